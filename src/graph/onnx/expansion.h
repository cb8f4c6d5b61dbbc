// Nodes whose results are as long as numbers say that are computed at run time (the sizes of a
// Resize, the ends of a Slice), written with nodes that take such a number as an extent. The
// construct pruner::Number makes an extent of a number: its output is the same number, but a
// constant of the import, as all that follows from shapes.
#pragma once

#include <onnx/onnx_pb.h>

#include "graph/found_values.h"
#include "graph/onnx/node_order.h"
#include "support/result.h"

namespace pruner {

inline constexpr const char* kNumber = "pruner::Number";
/// The part of input 0 that input 1 says the length of, along axis 0.
inline constexpr const char* kPart = "pruner::Part";

/// The inputs of an operator whose elements may be numbers of the run time.
struct NumberInputs {
  std::string_view op;
  int first, last;
};
/// Null: the operator has none.
const NumberInputs* number_inputs(std::string_view op);

/// The nodes that stand for one. The last of them makes its output "y", the others make "y~Add7"
/// and the like. The error names an attribute that no such nodes are known for.
Result<NodeList> expand_node(const onnx::NodeProto& node, const RunTimeNumbers& numbers);

/// As expand_node() of a Loop (flat_loop.cpp): the nodes of one round of its body, between nodes of
/// graph/ops/loop.cpp.
Result<NodeList> expand_loop(const onnx::NodeProto& node, const RunTimeNumbers& numbers);

/// A graph's nodes with each of those replaced whose first output is in `expanded`.
Result<NodeList> expand_nodes(const NodeList& nodes,
                              const std::map<std::string, RunTimeNumbers>& expanded);

}  // namespace pruner
