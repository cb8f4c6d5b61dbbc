// The readable name of a group: "conv2d 1x56x56x64 3x3 s1 -> 64 +bias +relu".
#pragma once

#include <string>

#include "graph/graph.h"

namespace pruner {

/// Returns the name of the kernel of `nodes`, in order: each anchor with the nodes after it.
std::string group_name(const Graph& graph, std::span<const Node* const> nodes);
/// Returns a group's name as `--op` takes it, with the workload key's options, such as bits=16. If
/// `--op` would take the name for another task, " ..." is appended, which `--op` refuses.
std::string operator_name(const std::string& name, const std::string& key);

}  // namespace pruner
