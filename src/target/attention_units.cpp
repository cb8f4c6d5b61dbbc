#include "target/attention_units.h"

#include <algorithm>

#include "support/ceil_div.h"

namespace pruner {

constexpr int kFirstCapability = 80;  // has mma.m16n8k16 of 16-bit factors, and cp.async
constexpr int64_t kRows = 16, kColumns = 8, kTerms = 16;
// Wider heads leave a warp too few registers.
constexpr int64_t kMostWidth = 256;
constexpr double kMostPadding = 1.25;  // limit of the padded extent over the extent

static bool fills(int64_t extent, int64_t unit) {
  const int64_t padded = ceil_div(extent, unit) * unit;
  return static_cast<double>(padded) <= kMostPadding * static_cast<double>(extent);
}

bool has_attention_units(const AttentionHead& head, const Gpu& gpu) {
  return compute_capability(gpu) >= kFirstCapability && 2 * head.queries >= kRows &&
         2 * head.keys >= kTerms && fills(head.terms, kTerms) && fills(head.width, kColumns) &&
         std::max(head.terms, head.width) <= kMostWidth;
}

}  // namespace pruner
