// What people call a group: "conv2d 1x56x56x64 3x3 s1 -> 64 +bias +relu".
#pragma once

#include <string>

#include "graph/graph.h"

namespace pruner {

/// The name of the kernel of `nodes`, in order: each anchor with what follows it.
std::string group_name(const Graph& graph, std::span<const Node* const> nodes);
/// A group's name as `--op` takes it: what the workload key says besides is added, such as bits=16;
/// where `--op` would take the name for another task, " ..." follows, which it refuses.
std::string operator_name(const std::string& name, const std::string& key);

}  // namespace pruner
