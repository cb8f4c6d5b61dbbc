// Instructions with which the 32 lanes of a warp multiply small matrices (PTX: mma.sync), what
// dot.h has for CPUs: a table, and what each lane holds of the matrices.
#pragma once

#include <span>
#include <string_view>

#include "space/fragment.h"
#include "target/target.h"
#include "tensor/dtype.h"

namespace pruner {

/// sum[i][j] += a[i][0] * b[j][0] + ... + a[i][k - 1] * b[j][k - 1] for i below m, j below n; the
/// lanes hold all three as their fragments say. Integers wrap around. In which order floats are
/// added, and how they are rounded on the way, is the device's.
struct MmaInstruction {
  std::string_view shape;  // PTX's name: "m16n8k16"
  int m, n, k;
  DType a, b, sum;  // float32 operands are rounded by round_to_tf32()
  int oldest;       // compute capability of the first devices that have it: 80 is sm_80
  double TensorRates::*rate;

  constexpr Fragment a_fragment() const { return operand(m, a); }
  constexpr Fragment b_fragment() const { return operand(n, b); }
  constexpr Fragment sum_fragment() const { return {m, n, 2}; }

 private:
  constexpr Fragment operand(int rows, DType dtype) const {
    return {rows, k, static_cast<int>(4 / dtype_bytes(dtype))};
  }
};

/// Returns every row of the table.
std::span<const MmaInstruction> mma_instructions();

/// Returns the instruction of a shape and types; null if there is none.
const MmaInstruction* find_mma_instruction(std::string_view shape, DType a, DType b, DType sum);

/// kMmaShapes is the number of shapes. shape_number() returns the number of an instruction's shape
/// in the order of the table's rows, from 0.
inline constexpr int kMmaShapes = 4;
int shape_number(const MmaInstruction& row);

/// Compute capabilities of the first devices with ldmatrix and with cp.async.
inline constexpr int kFirstWithLoadMatrix = 75, kFirstWithAsyncCopy = 80;
inline constexpr int kLeastAsyncCopyBytes = 4;

/// Returns a lane's registers for the operands of a warp's instructions, one step of the sums at a
/// time. `rows` and `columns` count the sums in the lane. 16 rows of 32 bytes of terms take four
/// registers, 8 columns take two.
constexpr int64_t operand_registers(int64_t rows, int64_t columns) { return 2 * rows + columns; }

}  // namespace pruner
