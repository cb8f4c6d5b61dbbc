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
/// for its types; nothing where it is none, or has too few rows, columns or terms for one.
std::optional<MmaContraction> find_mma(const ComputeDag& dag,
                                       StageId stage,
                                       std::span<const int64_t> shape,
                                       const Gpu& gpu);

/// Whether instructions of this shape compute all contractions of a DAG, of which there are some.
bool contracts_by_mma(const ComputeDag& dag, std::span<const int64_t> shape, const Gpu& gpu);

}  // namespace pruner
