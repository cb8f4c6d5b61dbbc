// What a draft counts beside operations and each operand's bytes once, level by level (Pruner,
// section 4.2, P_l0 to P_l2). Each can be left out, to see what it is worth.
#pragma once

#include <optional>
#include <string_view>

namespace pruner {

/// Of the three levels: a lane's registers, a core's or block's fast memory, the whole device.
enum class Penalty : unsigned {
  kComputeL0,  // what keeps a lane waiting: chains of results, work without reuse
  kMemoryL0,   // loads and stores of a lane; registers that there are not
  kComputeL1,  // lanes that idle, or repeat what others computed
  kMemoryL1,   // what L1 does not hold; shared memory that loads wait for or that is not there
  kComputeL2,  // cores that idle in the last wave
  kMemoryL2,   // what L2 does not hold; transactions that are not filled
};
inline constexpr std::string_view kPenaltyNames[] = {
    "compute-l0", "memory-l0", "compute-l1", "memory-l1", "compute-l2", "memory-l2"};

/// Those that are counted: all, unless said.
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
