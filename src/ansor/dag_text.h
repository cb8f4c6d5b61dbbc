// A DAG as TVM prints it ("C(i, j) += (A[i, k]*B[k, j])") -> the DAG. The text has the shapes of
// the inputs only: extents follow from the output's shape and from what is read. A window over a
// stage that is no input leaves its extent open, which is an error.
#pragma once

#include <span>
#include <string>

#include "tensor/compute_dag.h"

namespace pruner::ansor {

/// Lines in the order of the stages; the last one is the output.
Result<ComputeDag> dag_from_text(std::span<const std::string> lines,
                                 const std::vector<int64_t>& output_shape);

}  // namespace pruner::ansor
