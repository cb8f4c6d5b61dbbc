#include "target/held_operand.h"

#include "support/ceil_div.h"

namespace pruner {

constexpr int kFirstCapability = 80;  // has mma.m16n8k16 of 16-bit factors, and cp.async
constexpr int64_t kRows = 16, kColumns = 8, kTerms = 16;  // extents of the instruction
constexpr int64_t kBlockColumns = 128;                    // columns of a large tile
constexpr double kReadBytes = 4;                          // bytes of an element: float32
constexpr double kL2Rate = 3;                             // rate of L2 over that of memory (judged)

bool may_hold_operand(const HeldOperand& product, const Gpu& gpu) {
  if (compute_capability(gpu) < kFirstCapability) return false;
  if (2 * product.rows < kRows || 2 * product.columns < kColumns || product.terms < kTerms)
    return false;
  // The other operand's chunks need the other half.
  if (2 * kRows * product.terms * 2 > gpu.most_shared_bytes_per_block) return false;
  const auto again = static_cast<double>(ceil_div(product.columns, kBlockColumns) - 1);
  const double bytes = again * kReadBytes * static_cast<double>(product.rows * product.terms);
  return bytes <= gpu.launch_s * gpu.dram_bandwidth * kL2Rate;
}

bool may_rotate_heads(const RotatedHeads& heads, const Gpu& gpu) {
  // Instructions of an element: loads, its partner's place, two products.
  constexpr double kInstructions = 10;
  constexpr int64_t kBlockQueries = 64;
  const int64_t blocks = heads.heads * ceil_div(heads.queries, kBlockQueries);
  const double elements = static_cast<double>(blocks * heads.keys * heads.width);
  const double rate = gpu.clock_hz * gpu.fp32_lanes_per_sm * static_cast<double>(gpu.sms);
  return kInstructions * elements <= gpu.launch_s * rate;
}

}  // namespace pruner
