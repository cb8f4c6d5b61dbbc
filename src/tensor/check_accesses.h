// Whether every read of a DAG lies in the tensor that it reads: of a DAG that comes from a file.
#pragma once

#include "support/result.h"
#include "tensor/compute_dag.h"

namespace pruner {

/// An error that names the stage, the tensor and the index of a read that is not shown to stay
/// inside: by the extents of the axes, the conditions of the selects around it and the bounds of
/// integer tensors (index_bound; without one, an element is any number of its type).
Result<Unit> check_accesses(const ComputeDag& dag);

}  // namespace pruner
