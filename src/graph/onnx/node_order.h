// The order in which a graph's nodes can be read, and which of its values are.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "graph/onnx/model_functions.h"

namespace pruner {

/// Adds the names that a node reads: its inputs, and what its subgraphs take from around them.
void add_reads(const onnx::NodeProto& node, std::set<std::string>& names);

/// `"conv1"`, or `that makes "y"` for a node without a name.
std::string label(const onnx::NodeProto& node);

/// Numbers of nodes, producers first, else in the file's order. Errors name a value that is made
/// twice, or a node on a cycle.
Result<std::vector<int>> node_order(const NodeList& nodes);

}  // namespace pruner
