// An instruction of warps (space/mma.h) -> a function of CUDA C with that one instruction of PTX.
#pragma once

#include <string>
#include <vector>

#include "space/mma.h"

namespace pruner {

/// void name(sum_type* sum, const unsigned* a, const unsigned* b): what a lane holds, the elements'
/// bits; float32's sums are `float`.
struct MmaFunction {
  std::string name;
  const char* sum_type;
  int sum_registers, a_registers, b_registers;
  std::vector<std::string> texts;  // what it calls, then itself; "__device__" goes before each
};
/// Operands of float32 are rounded by it, or else have been.
MmaFunction mma_function(const MmaInstruction& row, bool rounds_operands = true);

}  // namespace pruner
