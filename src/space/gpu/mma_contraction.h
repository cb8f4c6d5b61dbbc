// Contractions that warps compute by an instruction on matrices (space/mma.h).
#pragma once

#include <optional>
#include <span>

#include "space/mma.h"
#include "target/target.h"
#include "tensor/compute_dag.h"

namespace pruner {

/// An operand of a contraction: its last two dimensions are rows of the instruction's matrix and
/// the terms of their sums, in either order.
struct MmaOperand {
  StageId stage;
  bool terms_first;  // the terms' dimension is the one before the rows'
};

/// sum[.., m, n] += a[.., m, k] * b[.., k, n]: iterators of the stage by number. `a` has the rows
/// of the sums.
struct MmaContraction {
  const MmaInstruction* instruction;
  MmaOperand a, b;
  int m, n, k;
};

/// The contraction that a stage is, with the instruction of this shape, m x n x k, that the GPU has
/// for its types, at some rate; nothing where it is none, or has too few rows, columns or terms for
/// one.
std::optional<MmaContraction> find_mma(const ComputeDag& dag,
                                       StageId stage,
                                       std::span<const int64_t> shape,
                                       const Gpu& gpu);

/// Sums that go through shared memory lie there in rows that are so much longer: the instruction
/// has eight rows, which four sums apart lie in different banks.
inline constexpr int64_t kEpiloguePad = 4;
/// Of a block's tile.
constexpr int64_t epilogue_bytes(int64_t rows, int64_t columns) {
  return rows * (columns + kEpiloguePad) * 4;
}
/// How many neighbours of the root's row, of a length, a thread writes at once from there: up to 16
/// bytes.
constexpr int64_t epilogue_run(int64_t row, int64_t element_bytes) {
  int64_t run = element_bytes > 2 ? 16 / element_bytes : 8;
  while (row % run != 0) run /= 2;
  return run;
}

/// Whether instructions of this shape compute all contractions of a DAG, of which there are some.
bool contracts_by_mma(const ComputeDag& dag, std::span<const int64_t> shape, const Gpu& gpu);

}  // namespace pruner
