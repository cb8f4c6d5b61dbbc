// The penalties that a draft counts, level by level, beside operations and each operand's bytes
// once (Pruner, section 4.2, P_l0 to P_l2). Each penalty can be left out, to see what it is worth.
#pragma once

#include <optional>
#include <string_view>

namespace pruner {

/// The penalties at three levels: a lane's registers, a core's or block's fast memory, the whole
/// device.
enum class Penalty : unsigned {
  kComputeL0,  // waits of a lane: chains of results, work without reuse
  kMemoryL0,   // loads and stores of a lane; registers that are missing
  kComputeL1,  // lanes that idle, or repeat what others computed
  kMemoryL1,   // bytes that L1 does not hold; shared memory that loads wait for or that is missing
  kComputeL2,  // cores that idle in the last wave
  kMemoryL2,   // bytes that L2 does not hold; transactions that are not filled
};
inline constexpr std::string_view kPenaltyNames[] = {
    "compute-l0", "memory-l0", "compute-l1", "memory-l1", "compute-l2", "memory-l2"};

/// The penalties that are counted: all except those that are left out.
class Penalties {
 public:
  constexpr bool counts(Penalty p) const {
    return (left_out_ >> static_cast<unsigned>(p) & 1) == 0;
  }
  constexpr Penalties without(Penalty p) const {
    Penalties fewer = *this;
    fewer.left_out_ |= 1u << static_cast<unsigned>(p);
    return fewer;
  }

 private:
  unsigned left_out_ = 0;
};

constexpr std::optional<Penalty> parse_penalty(std::string_view name) {
  for (unsigned p = 0; p < std::size(kPenaltyNames); ++p) {
    if (kPenaltyNames[p] == name) return Penalty{p};
  }
  return std::nullopt;
}

}  // namespace pruner
