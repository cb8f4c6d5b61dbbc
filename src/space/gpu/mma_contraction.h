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

/// A contraction sum[.., m, n] += a[.., m, k] * b[.., k, n]. `m`, `n` and `k` are numbers of the
/// stage's iterators; `a` has the rows of the sums.
struct MmaContraction {
  const MmaInstruction* instruction;
  MmaOperand a, b;
  int m, n, k;
};

/// Returns the contraction that a stage is, with the instruction of `shape` (m x n x k) for its
/// types. Returns nullopt if the stage is none, if the GPU lacks the instruction or its rate, or if
/// there are too few rows, columns or terms.
std::optional<MmaContraction> find_mma(const ComputeDag& dag,
                                       StageId stage,
                                       std::span<const int64_t> shape,
                                       const Gpu& gpu);

/// Sums that go through shared memory lie there in rows that are longer by this many elements. The
/// eight rows of an instruction, four sums apart, then lie in different banks.
inline constexpr int64_t kEpiloguePad = 4;
/// Returns the bytes of shared memory that the sums of a block's tile take.
constexpr int64_t epilogue_bytes(int64_t rows, int64_t columns) {
  return rows * (columns + kEpiloguePad) * 4;
}
/// Returns how many neighbours of the root's row a thread writes at once from shared memory. `row`
/// is the row's length; the neighbours take up to 16 bytes.
constexpr int64_t epilogue_run(int64_t row, int64_t element_bytes) {
  int64_t run = element_bytes > 2 ? 16 / element_bytes : 8;
  while (row % run != 0) run /= 2;
  return run;
}

/// Whether instructions of this shape compute all contractions of a DAG, of which there are some.
bool contracts_by_mma(const ComputeDag& dag, std::span<const int64_t> shape, const Gpu& gpu);

}  // namespace pruner
