// Brings a node of any opset to the form that the graph layer keeps, that of the newest one.
#pragma once

#include "graph/graph.h"

namespace pruner {

/// Rewrites `node`, whose inputs have their types, into one node or several, in order; the last one
/// makes its outputs. New constants are added to the graph.
Result<std::vector<Node>> upgrade_node(Graph& graph, Node node, int64_t opset);

}  // namespace pruner
