#include "analysis/operand.h"

#include <algorithm>
#include <cmath>

namespace pruner {

constexpr double kLineElements = 16;

// Bytes of the box that iterators of these spans reach, in whole cache lines: a packed operand lies
// in the order in which it is read, so there all of a line is used.
static double touched_bytes(const Access& access,
                            const Stage& producer,
                            bool packed,
                            std::span<const int64_t> spans) {
  double elements = 1;
  for (size_t d = 0; d < access.indices.size(); ++d) {
    const double extent = static_cast<double>(producer.axes[d].extent);
    double span = extent;
    if (access.indices[d]) {
      int64_t reach = 1;
      for (const auto& [var, coefficient] : access.indices[d]->terms) {
        reach += std::abs(coefficient) * (spans[static_cast<size_t>(var.value)] - 1);
      }
      span = std::min(extent, static_cast<double>(reach));
    }
    const bool last = !packed && d + 1 == access.indices.size();
    elements *= last ? std::min(std::max(span, kLineElements), extent) : span;
  }
  return elements * static_cast<double>(dtype_bytes(producer.dtype));
}

Operand make_operand(const Access& access,
                     const Stage& producer,
                     bool packed,
                     size_t iterators,
                     std::span<const SurroundingLoop> loops) {
  const size_t n = loops.size();
  const double whole = static_cast<double>(producer.num_elements() * dtype_bytes(producer.dtype));
  Operand operand{std::vector<double>(n + 1), std::vector<bool>(n, false)};
  std::vector<int64_t> spans(iterators, 1);
  operand.bytes[n] = touched_bytes(access, producer, packed, spans);
  for (size_t i = n; i-- > 0;) {
    if (loops[i].axis >= 0) {
      spans[static_cast<size_t>(loops[i].axis)] += (loops[i].extent - 1) * loops[i].step;
      operand.bytes[i] = touched_bytes(access, producer, packed, spans);
    } else {
      operand.bytes[i] =
          std::min(whole, operand.bytes[i + 1] * static_cast<double>(loops[i].extent));
    }
    operand.moves[i] = operand.bytes[i] > operand.bytes[i + 1] * 1.001;
  }
  return operand;
}

double fetched_bytes(std::span<const Operand> operands,
                     std::span<const SurroundingLoop> loops,
                     double capacity) {
  size_t fits = loops.size();
  for (size_t i = loops.size() + 1; i-- > 0;) {
    double sum = 0;
    for (const Operand& operand : operands) sum += operand.bytes[i];
    if (sum > capacity) break;
    fits = i;
  }
  double total = 0;
  for (const Operand& operand : operands) {
    double bytes = operand.bytes[fits];
    bool moved = false;
    for (size_t i = fits; i-- > 0;) {
      moved = moved || operand.moves[i];
      if (moved) bytes *= static_cast<double>(loops[i].extent);
    }
    total += bytes;
  }
  return total;
}

double element_stride(const Access& access, const Stage& producer, int axis) {
  double stride = 0, size = 1;
  for (size_t d = access.indices.size(); d-- > 0;) {
    if (access.indices[d])
      stride += size * static_cast<double>(access.indices[d]->coefficient(VarId{axis}));
    size *= static_cast<double>(producer.axes[d].extent);
  }
  return stride;
}

}  // namespace pruner
