#include "wrong_element.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstring>

namespace pruner {

std::string wrong_element(const Tensor& expected, const void* found, double tolerance) {
  Tensor as_found(expected.dtype(), expected.shape());
  std::memcpy(as_found.data(), found, static_cast<size_t>(expected.bytes()));
  int64_t first = -1, wrong = 0;
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    // Infinities are the same without a difference.
    const bool same =
        is_float(expected.dtype())
            ? as_found.get(i) == expected.get(i) ||
                  std::abs(as_found.get(i) - expected.get(i)) <= tolerance
            : as_found.get_int(i) == expected.get_int(i) ||
                  (tolerance > 0 && std::abs(as_found.get(i) - expected.get(i)) <= tolerance);
    if (same) continue;
    if (wrong++ == 0) first = i;
  }
  if (wrong == 0) return "";
  std::vector<int64_t> position(expected.shape().size());
  for (size_t d = position.size(), at = static_cast<size_t>(first); d-- > 0;) {
    position[d] = static_cast<int64_t>(at) % expected.shape()[d];
    at /= static_cast<size_t>(expected.shape()[d]);
  }
  return fmt::format("element [{}] is {}, expected {} to {}; {} of {} elements are wrong",
                     fmt::join(position, ", "),
                     as_found.get(first),
                     expected.get(first),
                     tolerance,
                     wrong,
                     expected.num_elements());
}

}  // namespace pruner
