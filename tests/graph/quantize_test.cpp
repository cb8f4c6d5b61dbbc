#include "graph/quantize.h"

#include <algorithm>

#include "graph/onnx/import.h"
#include "graph/small_graph.h"
#include "support/file.h"
#include "support/temporary_folder.h"

namespace pruner {
namespace {

// Convolutions, a residual sum, pools and a classifier.
Graph small_network() {
  NetworkBuilder b("small");
  ValueId x = b.input("input", {2, 3, 12, 12}, DType::kFloat32);
  x = b.conv_norm("stem", x, {.channels = 8, .kernel = 3, .then = Nonlinearity::kRelu});
  const ValueId branch = b.conv_norm("branch", x, {.channels = 8, .kernel = 3});
  x = b.relu(b.node("Add", {branch, x}));
  x = b.max_pool(x, 2, 2);
  x = b.conv_norm(
      "wise", x, {.channels = 8, .kernel = 3, .groups = 8, .then = Nonlinearity::kRelu6});
  return b.finish({{b.classifier("classes", x, 10), "output"}});
}

std::vector<ValueRange> ranges_of(const Graph& graph,
                                  std::span<const ValueId> values,
                                  const std::vector<Tensor>& inputs) {
  const Result<std::vector<Tensor>> found = interpret_graph(with_ranges_of(graph, values), inputs);
  EXPECT_TRUE(found.ok());
  std::vector<ValueRange> ranges;
  for (size_t i = 0; i < values.size(); ++i)
    ranges.push_back({(*found)[2 * i].get(0), (*found)[2 * i + 1].get(0)});
  return ranges;
}

// Returns the quantized network as the exported file holds it.
Graph quantized_file(const Graph& prepared, const std::vector<Tensor>& inputs) {
  const Result<std::vector<ValueId>> values = values_to_quantize(prepared);
  EXPECT_TRUE(values.ok());
  const Graph q = quantized(prepared, *values, ranges_of(prepared, *values, inputs));
  const TemporaryFolder folder = *TemporaryFolder::make("");  // tests run at the same time
  const std::string path = folder.path("quantized.onnx");
  EXPECT_TRUE(export_onnx(q, path).ok());
  const Result<Graph> read = import_onnx(path, {});
  EXPECT_TRUE(read.ok()) << read.error().message();
  return *read;
}

TEST(Quantize, TheFileIsNearTheNetworkAndRunsOnBytes) {
  const Graph prepared = prepared_to_quantize(small_network());
  const std::vector<Tensor> inputs = {waves({2, 3, 12, 12})};
  const Graph q = quantized_file(prepared, inputs);
  EXPECT_EQ(q[q.outputs[0]].name, "output");
  const Tensor exact = (*interpret_graph(prepared, inputs))[0];
  const Tensor found = (*interpret_graph(q, inputs))[0];
  double most = 0, apart = 0;
  for (int64_t i = 0; i < exact.num_elements(); ++i) {
    most = std::max(most, std::abs(exact.get(i)));
    apart = std::max(apart, std::abs(exact.get(i) - found.get(i)));
  }
  EXPECT_LT(apart, 0.05 * most);
  EXPECT_GT(apart, 0);
  // Floats are those at the network's border and of each kernel's end.
  const Graph run = run_graph_passes(q);
  expect_near((*interpret_graph(run, inputs))[0], found, 0.02);
  for (const Node& node : run.nodes) {
    if (node.op == "Conv" || node.op == "MaxPool" || node.op == "MatMul") {
      EXPECT_EQ(run[node.inputs[0]].dtype, DType::kUInt8) << node.op;
    }
  }
}

TEST(Quantize, ValuesThatOnlyMoveHaveTheStepsOfTheirSource) {
  NetworkBuilder b("moves");
  const ValueId x = b.input("x", {1, 4, 8, 8}, DType::kFloat32);
  const ValueId pooled = b.max_pool(b.conv("a", x, {.channels = 4, .kernel = 1}), 2, 2);
  const Graph graph = b.finish({{b.conv("b", pooled, {.channels = 2, .kernel = 1}), "y"}});
  const Result<std::vector<ValueId>> values = values_to_quantize(graph);
  ASSERT_TRUE(values.ok());
  // x and what a makes; not what is pooled, nor the output.
  EXPECT_EQ(values->size(), 2u);
}

TEST(Quantize, WhatIsAlwaysZeroHasAStep) {
  NetworkBuilder b("zero");
  const ValueId x = b.input("x", {1, 4}, DType::kFloat32);
  const ValueId w = b.constant("w", floats({4, 2}, {0, 1, 0, 2, 0, 3, 0, 4}));
  const Graph graph = b.finish({{b.node("MatMul", {x, w}), "y"}});
  const std::vector<Tensor> zeros = {floats({1, 4}, {0, 0, 0, 0})};
  const Graph q = quantized_file(graph, zeros);
  EXPECT_EQ(values_of((*interpret_graph(q, zeros))[0]), (std::vector<double>{0, 0}));
}

TEST(Quantize, RefusesWhatHasNothingToQuantize) {
  NetworkBuilder b("none");
  const ValueId x = b.input("x", {4}, DType::kFloat32);
  const Graph graph = b.finish({{b.relu(x), "y"}});
  EXPECT_EQ(values_to_quantize(graph).error().message(),
            "the network has no Conv, Gemm or MatMul of float32 to quantize");
  NetworkBuilder c("twice");
  const ValueId q = c.input("x", {4}, DType::kUInt8);
  const ValueId scale = c.constant("s", floats({}, {0.5}));
  EXPECT_EQ(
      values_to_quantize(c.finish({{c.node("Dequantize", {q, scale}), "y"}})).error().message(),
      "the network is quantized already");
}

}  // namespace
}  // namespace pruner
