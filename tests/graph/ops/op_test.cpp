#include "graph/ops/op.h"

#include <gmock/gmock.h>

#include "graph/small_graph.h"

namespace pruner {
namespace {

// Operands that suit some operator: data, weights, parameters.
const std::vector<Ints> kShapes = {
    {}, {1}, {4}, {2, 4}, {4, 4}, {1, 4, 4}, {1, 4, 6, 6}, {4, 4, 3, 3}, {4, 1, 3, 3}};

// Whatever inference lets through has to have stages that can be interpreted: a file must not be
// able to reach a CHECK.
TEST(GraphOps, WhatInfersAlsoRuns) {
  Rng rng(1);
  int accepted = 0;
  for (const GraphOp& op : graph_ops()) {
    for (int trial = 0; trial < 400; ++trial) {
      Graph graph;
      Node node{std::string(op.name), "it", {}, {}, {}};
      const size_t n = std::min(op.min_inputs + static_cast<size_t>(rng.below(3)), op.max_inputs);
      const auto pick = [&](size_t size) {
        return static_cast<size_t>(rng.below(static_cast<int64_t>(size)));
      };
      const auto dtype = [&] { return kDTypes[pick(std::size(kDTypes))].dtype; };
      const DType common = dtype();
      for (size_t i = 0; i < n; ++i) {
        Tensor tensor(pick(3) == 0 ? dtype() : common, kShapes[pick(kShapes.size())]);
        for (int64_t e = 0; e < tensor.num_elements(); ++e) tensor.set_int(e, rng.below(4) - 1);
        graph.values.push_back({"input", tensor.dtype(), tensor.shape(), std::nullopt});
        if (i > 0 && pick(2) == 0) graph.values.back().constant = tensor;
        node.inputs.push_back(ValueId{static_cast<int32_t>(i)});
      }
      if (pick(2) == 0) node.attributes["axis"] = rng.below(4) - 2;
      if (pick(2) == 0) node.attributes["group"] = rng.below(5);
      node.attributes["kernel_shape"] = Ints{3, 3};
      node.attributes["size"] = int64_t{3};
      const auto known = listed(op.attributes);
      std::erase_if(node.attributes, [&](const auto& given) {
        return std::ranges::find(known, given.first, [](const auto& of) { return of.first; }) ==
               known.end();
      });
      if (node.op == "Cast" || node.op == "BitCast" || node.op == "Quantize")
        node.attributes["to"] = std::string(dtype_name(dtype()));
      if (op.attributes.find("kernel_shape") != op.attributes.npos && node.op.starts_with("Conv")) {
        node.attributes.erase("kernel_shape");
      }
      node.outputs = {ValueId{static_cast<int32_t>(n)}};
      graph.values.push_back({"out", {}, {}, std::nullopt});
      if (!infer_node(graph, node).ok()) continue;
      ++accepted;
      if (graph[node.outputs[0]].constant || (op.lower == nullptr && op.routine == nullptr))
        continue;
      // An element drawn as -1 is a large number in an unsigned type.
      if (element_count(graph[node.outputs[0]].shape) > 1 << 20) continue;
      std::vector<Tensor> inputs;
      for (const ValueId id : node.inputs) {
        inputs.push_back(id.valid() ? Tensor(graph[id].dtype, graph[id].shape) : Tensor());
      }
      const std::vector<Tensor> outputs = evaluate_node(graph, node, inputs);
      EXPECT_EQ(outputs[0].shape(), graph[node.outputs[0]].shape) << op.name;
      EXPECT_EQ(outputs[0].dtype(), graph[node.outputs[0]].dtype) << op.name;
    }
  }
  EXPECT_GT(accepted, 1000);
}

TEST(GraphOps, TakeNoNumbersWhoseProductOverflows) {
  EXPECT_THAT(refusal("MaxPool", {waves({1, 1, 4, 4})}, {{"kernel_shape", Ints{INT64_MIN, 2}}}),
              testing::HasSubstr("attribute \"kernel_shape\" has the number -9223372036854775808, "
                                 "expected -2147483648 to 2147483648"));
}

}  // namespace
}  // namespace pruner
