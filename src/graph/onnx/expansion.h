// Rewrites nodes whose results have extents that are computed at run time, such as the sizes of a
// Resize or the ends of a Slice. The new nodes take such a number as an extent. The construct
// pruner::Number makes an extent of a number. Its output is the same number, but a constant of the
// import, like all that follows from shapes.
#pragma once

#include <onnx/onnx_pb.h>

#include "graph/found_values.h"
#include "graph/onnx/node_order.h"
#include "support/result.h"

namespace pruner {

inline constexpr const char* kNumber = "pruner::Number";
/// `kPart` is a construct that takes the part of input 0 whose length along axis 0 input 1 says.
inline constexpr const char* kPart = "pruner::Part";

/// The inputs of an operator whose elements may be numbers of the run time.
struct NumberInputs {
  std::string_view op;
  int first, last;
};
/// Returns null if the operator has no such inputs.
const NumberInputs* number_inputs(std::string_view op);

/// Returns the nodes that stand for `node`. The last of them makes the node's output "y", the
/// others make "y~Add7" and the like. The error names an attribute for which no nodes are known.
Result<NodeList> expand_node(const onnx::NodeProto& node, const RunTimeNumbers& numbers);

/// Does the same for a Loop (flat_loop.cpp): returns the nodes of one round of the Loop's body,
/// between nodes of graph/ops/loop.cpp.
Result<NodeList> expand_loop(const onnx::NodeProto& node, const RunTimeNumbers& numbers);

/// Returns a graph's nodes; each node whose first output is in `expanded` is replaced.
Result<NodeList> expand_nodes(const NodeList& nodes,
                              const std::map<std::string, RunTimeNumbers>& expanded);

}  // namespace pruner
