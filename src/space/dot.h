// Instructions that add several products of narrow numbers to each sum of a vector (AVX512-BF16's,
// AVX512-VNNI's, those of Arm's extensions dotprod, i8mm and bf16) or of a tile (AMX's, and the 2x2
// ones of i8mm and bf16), and the contractions that they compute.
#pragma once

#include <optional>
#include <string_view>

#include "target/target.h"
#include "tensor/compute_dag.h"

namespace pruner {

/// Rows and steps of an instruction on tiles, at most: of AMX's, and the rows of Arm's.
inline constexpr int kMatrixRows = 16, kMatrixSteps = 16;
inline constexpr int kPairRows = 2;

/// sum += a[0] * b[0] + ... + a[terms - 1] * b[terms - 1] in each lane. Of a tile: sum[m][n] gets
/// so many from each of up to `steps` steps s, a[m][s][t] * b[s][n][t], in up to `rows` rows m; of
/// kPairRows it takes two lanes at a time.
struct DotInstruction {
  std::string_view name;
  Isa isa;
  DType a, b, sum;
  int rows, steps;  // 1 and 1: of a vector
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

/// Whether it is a product of two numbers that are rounded to tf32.
bool is_tf32_product(const Expr& e);

/// That which adds products of elements of types `a` and `b`, in this order or the other, to a
/// vector or a tile; null: there is none.
const DotInstruction* find_dot_instruction(Isa isa, DType a, DType b, DType sum, bool tile);

/// That of a contraction whose products, both factors cast from a narrow type, it adds along the
/// last reduce axis longer than 1, where it is faster than FMAs on `target`. Null where there is
/// none, where its terms do not divide the axis, or where no constant can be packed for it. Of a
/// tile: the constant has the vector axis alone, and the other factor lies in rows of terms, one
/// for each element of an axis before (matrix_row_axis()).
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

/// The most of `extent` up to `limit` that tiles of an instruction take at once with little waste:
/// of rows, whose tiles may overlap, and of steps, which must divide it.
int64_t matrix_rows(int64_t extent, int64_t limit);
int64_t matrix_steps(int64_t extent, int64_t limit);

}  // namespace pruner
