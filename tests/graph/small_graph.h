// Small graphs for tests: built node by node, run as they are and after the graph passes.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "graph/functions/body.h"
#include "graph/networks/network_builder.h"
#include "graph/passes.h"

namespace pruner {

using Ints = std::vector<int64_t>;

inline Tensor floats(std::vector<int64_t> shape, std::vector<double> values) {
  Tensor tensor(DType::kFloat32, std::move(shape));
  for (size_t i = 0; i < values.size(); ++i) tensor.set(static_cast<int64_t>(i), values[i]);
  return tensor;
}

inline Tensor integers(std::vector<int64_t> shape, Ints values, DType dtype = DType::kInt64) {
  Tensor tensor(dtype, std::move(shape));
  for (size_t i = 0; i < values.size(); ++i) tensor.set_int(static_cast<int64_t>(i), values[i]);
  return tensor;
}

/// Values without a pattern that a wrong index could hit by chance.
inline Tensor waves(std::vector<int64_t> shape, double phase = 0) {
  Tensor tensor(DType::kFloat32, std::move(shape));
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    tensor.set(i,
               std::sin(0.7 * static_cast<double>(i) + phase) + 0.01 * static_cast<double>(i % 17));
  }
  return tensor;
}

inline std::vector<double> values_of(const Tensor& tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) values.push_back(tensor.get(i));
  return values;
}

inline void expect_near(const Tensor& found, const Tensor& expected, double tolerance = 1e-5) {
  ASSERT_EQ(found.shape(), expected.shape());
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    if (found.get(i) == expected.get(i)) continue;  // infinities, too
    if (std::isnan(found.get(i)) && std::isnan(expected.get(i))) continue;
    ASSERT_NEAR(found.get(i), expected.get(i), tolerance * (1 + std::abs(expected.get(i))))
        << "element " << i;
  }
}

/// The operators of each kernel, in order: "MatMul+Relu+Cast, MatMul".
inline std::string kernels(const Graph& graph) {
  std::map<int, std::string> groups;
  for (const Node& node : graph.nodes) {
    if (node.group < 0) continue;
    std::string& text = groups[node.group];
    text += (text.empty() ? "" : "+") + node.op;
  }
  std::string text;
  for (const auto& [number, group] : groups) text += (text.empty() ? "" : ", ") + group;
  return text;
}

/// An operand of run_op: an input of the network, or a constant.
struct Operand {
  Tensor tensor;
  bool constant = false;
  bool absent = false;  // left out
  Operand(Tensor t) : tensor(std::move(t)) {}
  Operand(Ints values) : constant(true) {
    const auto n = static_cast<int64_t>(values.size());
    tensor = integers({n}, std::move(values));
  }
  static Operand none() {
    Operand operand{Tensor()};
    operand.absent = true;
    return operand;
  }
  static Operand weight(Tensor t) {
    Operand operand(std::move(t));
    operand.constant = true;
    return operand;
  }
};

/// Returns the graph's outputs for `inputs`; the graph after the passes must give the same.
inline std::vector<Tensor> run_graph(const Graph& graph, const std::vector<Tensor>& inputs) {
  const Result<std::vector<Tensor>> direct = interpret_graph(graph, inputs);
  const Result<std::vector<Tensor>> passed = interpret_graph(run_graph_passes(graph), inputs);
  EXPECT_TRUE(direct.ok() && passed.ok());
  for (size_t i = 0; i < direct->size(); ++i) expect_near((*passed)[i], (*direct)[i]);
  return *direct;
}

/// `NodeCase` is a network of one node, and the inputs that the network runs on.
struct NodeCase {
  Graph graph;
  std::vector<Tensor> inputs;
};
inline NodeCase make_node_case(const std::string& op,
                               const std::vector<Operand>& operands,
                               size_t outputs,
                               Attributes attributes = {},
                               bool loops_over_steps = false) {
  NetworkBuilder b(op);
  std::vector<ValueId> ids;
  std::vector<Tensor> inputs;
  for (const Operand& operand : operands) {
    const std::string name = "input" + std::to_string(ids.size());
    const Tensor& t = operand.tensor;
    if (operand.absent) {
      ids.emplace_back();
      continue;
    }
    if (!operand.constant) inputs.push_back(t);
    ids.push_back(operand.constant ? b.constant(name, t) : b.input(name, t.shape(), t.dtype()));
  }
  Graph graph = b.finish({});
  graph.loops_over_steps = loops_over_steps;
  for (size_t i = 0; i < outputs; ++i) {
    graph.values.push_back({"out" + std::to_string(i), {}, {}, std::nullopt});
    graph.outputs.push_back(ValueId{static_cast<int32_t>(graph.values.size()) - 1});
  }
  const Result<Unit> made =
      append_call(graph, {op, "it", ids, graph.outputs, std::move(attributes)});
  EXPECT_TRUE(made.ok()) << made.error().message();
  return {std::move(graph), std::move(inputs)};
}

/// The outputs of such a network.
inline std::vector<Tensor> run_outputs(const std::string& op,
                                       const std::vector<Operand>& operands,
                                       size_t outputs,
                                       Attributes attributes = {}) {
  const NodeCase made = make_node_case(op, operands, outputs, std::move(attributes));
  return run_graph(made.graph, made.inputs);
}

/// The single output of a network of one node.
inline Tensor run_op(const std::string& op,
                     const std::vector<Operand>& operands,
                     Attributes attributes = {}) {
  return run_outputs(op, operands, 1, std::move(attributes))[0];
}

/// Checks a node that has to be refused: the error's text.
inline std::string refusal(const std::string& op,
                           const std::vector<Operand>& operands,
                           Attributes attributes = {}) {
  Graph graph;
  Node node{op, "it", {}, {}, std::move(attributes)};
  for (const Operand& operand : operands) {
    const Tensor& t = operand.tensor;
    if (operand.absent) {
      node.inputs.emplace_back();
      continue;
    }
    graph.values.push_back({"input", t.dtype(), t.shape(), std::nullopt});
    if (operand.constant) graph.values.back().constant = t;
    node.inputs.push_back(ValueId{static_cast<int32_t>(graph.values.size()) - 1});
  }
  graph.values.push_back({"out", {}, {}, std::nullopt});
  node.outputs = {ValueId{static_cast<int32_t>(graph.values.size()) - 1}};
  const Result<Unit> result = append_call(graph, node);
  return result.ok() ? "" : result.error().message();
}

/// The operators of a graph's nodes, "Conv Relu".
inline std::string operators(const Graph& graph) {
  std::string text;
  for (const Node& node : graph.nodes) text += (text.empty() ? "" : " ") + node.op;
  return text;
}

}  // namespace pruner
