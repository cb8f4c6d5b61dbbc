// An instruction of warps (space/mma.h) -> a function of CUDA C with that one instruction of PTX.
#pragma once

#include <string>
#include <vector>

#include "space/mma.h"

namespace pruner {

/// void name(sum_type* sum, const unsigned* a, const unsigned* b): the arguments are the bits of
/// the elements that a lane holds; sums of float32 are `float`.
struct MmaFunction {
  std::string name;
  const char* sum_type;
  int sum_registers, a_registers, b_registers;
  std::vector<std::string> texts;  // callees, then the function; "__device__" goes before each
};
/// Returns the function of `row`. If `rounds_operands` is false, operands of float32 are rounded
/// already; otherwise the function rounds them.
MmaFunction mma_function(const MmaInstruction& row, bool rounds_operands = true);

}  // namespace pruner
