// An instruction of warps, or of groups of them (space/mma.h) -> a function of CUDA C with that one
// instruction of PTX.
#pragma once

#include <array>
#include <cstdint>
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

/// Returns the function of a group's row with so many columns: void name(sum_type* sum, unsigned
/// long long a, unsigned long long b). Its operands are descriptors of matrices, which
/// matrix_descriptor() makes, one of the texts; `transposed` says whether a line of each has rows
/// of one term.
MmaFunction group_mma_function(const MmaInstruction& row,
                               int columns,
                               std::array<bool, 2> transposed = {});
/// Returns the function whose first operand is the bits of what a lane holds of it: const unsigned*
/// a.
MmaFunction held_group_mma_function(const MmaInstruction& row, int columns, bool transposed_b);

/// A call of matrix_descriptor() for the matrix of so many columns and lines that begins at
/// `place`, an expression of CUDA C.
std::string matrix_descriptor(const std::string& place,
                              int64_t line_bytes,
                              int64_t lines,
                              bool transposed = false);

/// Returns a function without arguments that is one instruction of PTX, which keeps its place among
/// accesses to memory.
std::string order_function(const std::string& name, const std::string& instruction);
/// Instructions of order_function() around a group's products.
inline constexpr const char* kFenceShared = "fence.proxy.async.shared::cta";
inline constexpr const char* kFenceSums = "wgmma.fence.sync.aligned";
inline constexpr const char* kCommitProducts = "wgmma.commit_group.sync.aligned";
inline constexpr const char* kWaitForProducts = "wgmma.wait_group.sync.aligned {}";

}  // namespace pruner
