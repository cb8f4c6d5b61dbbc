// Registered workload functions of public tuning logs: a workload key's name and arguments -> the
// compute DAG that the function builds, stages numbered as Ansor numbers them.
#pragma once

#include <string>

#include "tensor/compute_dag.h"

namespace pruner::ansor {

/// The DAGs that `["conv2d_layer", 128, ...]` may stand for, the likeliest first; an error when no
/// such function is known or the arguments don't fit it. Scripts register one name for a bare
/// convolution and for those with an epilogue; only the steps tell which it was.
Result<std::vector<ComputeDag>> registered_workload(const Json& key);

/// Whether a function of this name is known.
bool is_registered_workload(const std::string& name);

}  // namespace pruner::ansor
