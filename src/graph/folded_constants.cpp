#include "graph/folded_constants.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pruner {

// The number of bytes up to which an input is known by its elements, wherever they lie.
static constexpr int64_t kFewBytes = 64;

Tensor read_only(const Tensor& tensor) {
  return Tensor::view(
      tensor.dtype(), tensor.shape(), std::make_shared<const Tensor>(tensor), tensor.data());
}

void FoldedConstants::keep(const Tensor& tensor) {
  const std::lock_guard lock(mutex_);
  kept_.try_emplace(tensor.data(), tensor);
}

// A view of the first elements of a kept tensor begins at the same place.
bool FoldedConstants::is_kept(const Tensor& tensor) const { return kept_.contains(tensor.data()); }

// Empty: the inputs have no identity that lasts.
std::string FoldedConstants::key_of(const std::string& operation,
                                    std::span<const Tensor> inputs) const {
  std::string key = operation;
  bool any_kept = false;
  for (const Tensor& input : inputs) {
    key += fmt::format("; {} {}", dtype_name(input.dtype()), fmt::join(input.shape(), "x"));
    if (input.bytes() <= kFewBytes) {
      key.append(static_cast<const char*>(input.data()), static_cast<size_t>(input.bytes()));
    } else if (is_kept(input)) {
      key += fmt::format(" at {}", input.data());
      any_kept = true;
    } else {
      return "";
    }
  }
  return any_kept ? key : "";
}

std::vector<Tensor> FoldedConstants::make(const std::string& operation,
                                          std::span<const Tensor> inputs,
                                          const std::function<std::vector<Tensor>()>& make) {
  std::string key;
  {
    const std::lock_guard lock(mutex_);
    key = key_of(operation, inputs);
    if (const auto known = made_.find(key); known != made_.end()) return known->second;
  }
  std::vector<Tensor> made = make();
  if (key.empty()) return made;
  int64_t bytes = 0;
  for (const Tensor& tensor : made) bytes += tensor.bytes();
  const std::lock_guard lock(mutex_);
  if (bytes_ + bytes > kMostKeptBytes) return made;
  const auto [known, is_new] = made_.try_emplace(std::move(key));
  if (!is_new) return known->second;
  bytes_ += bytes;
  for (const Tensor& tensor : made) {
    known->second.push_back(read_only(tensor));
    kept_.try_emplace(tensor.data(), tensor);
  }
  return known->second;
}

}  // namespace pruner
