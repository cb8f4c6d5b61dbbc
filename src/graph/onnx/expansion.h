// Nodes whose results are as long as numbers say that are computed at run time (the sizes of a
// Resize, the ends of a Slice), written with nodes that take such a number as an extent. The
// construct pruner::Number stands for one: its input is a number, its output the same number, which
// from there on is a constant of the import, as what follows from shapes is.
#pragma once

#include <onnx/onnx_pb.h>

#include "graph/found_values.h"
#include "graph/onnx/node_order.h"
#include "support/result.h"

namespace pruner {

inline constexpr const char* kNumber = "pruner::Number";
/// The part of input 0 that input 1 says the length of, along axis 0.
inline constexpr const char* kPart = "pruner::Part";

/// Which of an operator's inputs has numbers that may be known at run time only; -1: none has.
struct NumberInputs {
  std::string_view op;
  int first = -1, last = -1;  // inputs
};
/// Null: the operator has none.
const NumberInputs* number_inputs(std::string_view op);

/// The nodes that stand for one. Names of what they make are "y~Add7" where "y" is its output,
/// which the last one makes. The error says what the operator's attributes ask for that no such
/// nodes are known for.
Result<NodeList> expand_node(const onnx::NodeProto& node, const RunTimeNumbers& numbers);

/// As expand_node() of a Loop (flat_loop.cpp): the nodes of one round of its body, between those at
/// which its rounds begin and end (graph/ops/loop.cpp).
Result<NodeList> expand_loop(const onnx::NodeProto& node, const RunTimeNumbers& numbers);

/// A graph's nodes with each of those replaced whose first output is in `expanded`.
Result<NodeList> expand_nodes(const NodeList& nodes,
                              const std::map<std::string, RunTimeNumbers>& expanded);

}  // namespace pruner
