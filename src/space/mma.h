// Instructions with which warps multiply small matrices: a table, and what each lane holds of the
// matrices. It is for GPUs what dot.h is for CPUs. One warp runs PTX's mma.sync on matrices in its
// registers. The four warps of a group run wgmma together: it reads its operands from shared memory
// (matrix_lines.h) while the warps go on.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "space/fragment.h"
#include "target/target.h"
#include "tensor/dtype.h"

namespace pruner {

/// sum[i][j] += a[i][0] * b[j][0] + ... + a[i][k - 1] * b[j][k - 1] for i below m, j below n; the
/// lanes hold all three as their fragments say. Of a group's instruction, the lanes hold the sums
/// alone, and warp w has rows 16 * w to 16 * w + 15; `n` is the least number of columns, and one
/// instruction takes any `fragments` of them that takes() accepts. Integers wrap around. In which
/// order floats are added, and how they are rounded on the way, is the device's.
struct MmaInstruction {
  std::string_view shape;  // PTX's name: "m16n8k16"
  int m, n, k;
  DType a, b, sum;  // float32 operands are rounded by round_to_tf32()
  int oldest;       // compute capability of the first devices that have it: 80 is sm_80
  double TensorRates::*rate;
  int warps = 1;               // warps that run it together
  int newest = kNoCapability;  // compute capability of the last devices that have it

  constexpr bool of_group() const { return warps > 1; }
  constexpr bool is_on(int capability) const {
    return oldest <= capability && capability <= newest;
  }
  /// Whether a group's instruction has so many times `n` columns: up to 256, and of bytes more than
  /// 32 only multiples of 16.
  constexpr bool takes(int64_t fragments) const {
    return fragments >= 1 && fragments <= kMostGroupFragments &&
           (dtype_bytes(a) > 1 || fragments <= 4 || fragments % 2 == 0);
  }

  constexpr Fragment a_fragment() const { return operand(m / warps, a); }
  constexpr Fragment b_fragment() const { return operand(n, b); }
  constexpr Fragment sum_fragment() const { return {m / warps, n, 2}; }

  static constexpr int kNoCapability = 1 << 20;  // no device has more
  static constexpr int64_t kMostGroupFragments = 32;

 private:
  constexpr Fragment operand(int rows, DType dtype) const {
    return {rows, k, static_cast<int>(4 / dtype_bytes(dtype))};
  }
};

/// Returns every row of the table.
std::span<const MmaInstruction> mma_instructions();

/// Returns PTX's name of a shape (m x n x k): "m16n8k16".
std::string mma_shape(std::span<const int64_t> shape);

/// Returns the instruction of a shape and types; null if there is none.
const MmaInstruction* find_mma_instruction(std::string_view shape, DType a, DType b, DType sum);

/// kMmaShapes is the number of shapes, of which the first kWarpShapes are of one warp, the others
/// of a group. shape_number() returns the number of an instruction's shape in the order of the
/// table's rows, from 0.
inline constexpr int kMmaShapes = 7, kWarpShapes = 4;
int shape_number(const MmaInstruction& row);

/// Compute capabilities of the first devices with ldmatrix and with cp.async.
inline constexpr int kFirstWithLoadMatrix = 75, kFirstWithAsyncCopy = 80;
inline constexpr int kLeastAsyncCopyBytes = 4;
/// ... and of those whose launches may begin before the ones before have ended (PTX:
/// griddepcontrol).
inline constexpr int kFirstWithEarlyLaunch = 90;

/// Returns a lane's registers for the operands of a warp's instructions, one step of the sums at a
/// time. `rows` and `columns` count the sums in the lane. 16 rows of 32 bytes of terms take four
/// registers, 8 columns take two.
constexpr int64_t operand_registers(int64_t rows, int64_t columns) { return 2 * rows + columns; }

}  // namespace pruner
