// Instructions that add several products of narrow numbers to each sum of a vector (AVX512-BF16's,
// AVX512-VNNI's, those of Arm's extensions dotprod, i8mm and bf16) or of a tile (AMX's, and the 2x2
// ones of i8mm and bf16), and the contractions that they compute.
#pragma once

#include <optional>
#include <string_view>

#include "target/target.h"
#include "tensor/compute_dag.h"

namespace pruner {

/// The most rows and steps of AMX's instructions on tiles, and the rows of Arm's.
inline constexpr int kMatrixRows = 16, kMatrixSteps = 16;
inline constexpr int kPairRows = 2;

/// On vectors: sum += a[0] * b[0] + ... + a[terms - 1] * b[terms - 1] in each lane. On tiles: each
/// sum[m][n] gets `terms` products a[m][s][t] * b[s][n][t] from each of up to `steps` steps s, in
/// up to `rows` rows m. An instruction of kPairRows rows takes two lanes at a time.
struct DotInstruction {
  std::string_view name;
  Isa isa;
  DType a, b, sum;
  int rows, steps;  // 1 and 1: a vector
  int terms;
  double DotRates::*rate;
  bool of_tile() const { return rows > 1; }
};

/// A product of two numbers of narrow types, as bodies of contractions have it.
struct NarrowProduct {
  const Cast* a;
  const Cast* b;
};
std::optional<NarrowProduct> narrow_product(const Expr& e);

/// Whether `e` is a product of two numbers that are rounded to tf32.
bool is_tf32_product(const Expr& e);

/// Returns the instruction that adds products of types `a` and `b`, in either order, to a vector
/// or, if `tile`, to a tile; null if there is none.
const DotInstruction* find_dot_instruction(Isa isa, DType a, DType b, DType sum, bool tile);

/// Returns the instruction that adds up the contraction `stage` along its last reduce axis longer
/// than 1. Both factors of the products must be cast from a narrow type. Returns null if there is
/// no instruction faster than FMAs on `target`, if its terms do not divide the axis, or if no
/// constant can be packed. If `tile`, only the constant has the vector axis; the other factor lies
/// in rows of terms, one row for each element of matrix_row_axis().
const DotInstruction* find_dot_instruction(const ComputeDag& dag,
                                           StageId stage,
                                           const Target& target,
                                           bool tile);

/// Whether a stage reads an operand once, alone, and in an order in which it can be packed by the
/// vector axis: each dimension is moved by iterators of which the last one goes through it.
bool is_packable(const ComputeDag& dag, StageId stage, StageId operand, int vector);

/// The spatial axis whose elements are the rows of a stage's tiles: the last one longer than 1
/// before the vector axis; -1: none.
int matrix_row_axis(const Stage& stage);

/// Return how much of `extent`, up to `limit`, an instruction's tiles take at once with little
/// waste. Tiles of rows may overlap; the number of steps divides `extent`.
int64_t matrix_rows(int64_t extent, int64_t limit);
int64_t matrix_steps(int64_t extent, int64_t limit);

}  // namespace pruner
