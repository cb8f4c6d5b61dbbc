// The reference interpreter: the meaning of a compute DAG. Evaluates any chosen output elements on
// demand, in double precision (rounded to the stage's dtype where a stage is stored), pulling just
// the elements of the producers that they need; stages with a reduction are computed once an
// element. Expressions are flattened to a tape that runs over blocks of the innermost reduce axis.
#pragma once

#include <span>
#include <vector>

#include "support/rng.h"
#include "tensor/compute_dag.h"
#include "tensor/tensor.h"

namespace pruner {

/// Values of `elements` (row-major positions) of stage `stage`; inputs in the order of
/// dag.inputs().
std::vector<double> interpret_elements(const ComputeDag& dag,
                                       std::span<const Tensor> inputs,
                                       StageId stage,
                                       std::span<const int64_t> elements);

/// Every output of the DAG, whole.
std::vector<Tensor> interpret(const ComputeDag& dag, std::span<const Tensor> inputs);

/// At least `count` distinct positions (or all) of a tensor: all corners and edges' ends of every
/// axis (first, last, and both sides of the middle), the rest drawn by rng. Sorted.
std::vector<int64_t> sample_elements(std::span<const int64_t> shape, int64_t count, Rng& rng);

/// Seeded inputs for a DAG: floats in [-1, 1), or [0.5, 1.5) for denominators' sake where the DAG
/// divides by or takes a root or logarithm of a load; integers below their index_bound (or 16).
std::vector<Tensor> random_inputs(const ComputeDag& dag, Rng& rng);

}  // namespace pruner
