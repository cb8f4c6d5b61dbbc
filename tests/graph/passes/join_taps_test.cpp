#include "graph/small_graph.h"

namespace pruner {
namespace {

PassOptions options(Precision precision = Precision::kBFloat16) {
  PassOptions wanted;
  wanted.target.dots.bfloat16 = 2;
  wanted.precision = precision;
  return wanted;
}

// Small whole numbers, whose sums of products are exact.
Tensor digits(std::vector<int64_t> shape, int64_t phase) {
  Tensor tensor(DType::kFloat32, std::move(shape));
  for (int64_t i = 0; i < tensor.num_elements(); ++i)
    tensor.set(i, static_cast<double>((i * 7 + phase) % 5 - 2));
  return tensor;
}

Graph convolution(int64_t channels, Attributes attributes, int64_t groups = 1) {
  NetworkBuilder b("stem");
  const ValueId x = b.input("x", {2, channels, 9, 11}, DType::kFloat32);
  attributes["group"] = groups;
  const ValueId w = b.constant("w", digits({4, channels / groups, 3, 3}, 1));
  return b.finish({{b.node("Conv", {x, w, b.constant("b", digits({4}, 2))}, attributes), "y"}});
}

// The kernel that the convolution has after the passes, which compute the same.
std::vector<int64_t> kernel_after(const Graph& graph, const PassOptions& wanted = options()) {
  const Graph after = run_graph_passes(graph, wanted);
  const std::vector<Tensor> inputs = {digits(graph[graph.inputs[0]].shape, 3)};
  const Result<std::vector<Tensor>> expected = interpret_graph(graph, inputs);
  const Result<std::vector<Tensor>> found = interpret_graph(after, inputs);
  EXPECT_TRUE(expected.ok() && found.ok());
  expect_near((*found)[0], (*expected)[0], 0);
  for (const Node& node : after.nodes)
    if (node.op == "Conv") return after[node.inputs[1]].shape;
  return {};
}

using Shape = std::vector<int64_t>;

TEST(JoinTaps, TheTapsOfARowAreOne) {
  const Attributes padded = {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 2}}};
  EXPECT_EQ(kernel_after(convolution(3, padded)), (Shape{3, 12, 1, 4}));
  EXPECT_EQ(kernel_after(convolution(1, padded)), (Shape{3, 6, 1, 4}));
  EXPECT_EQ(kernel_after(convolution(8, {})), (Shape{3, 24, 1, 4}));
  EXPECT_EQ(kernel_after(convolution(3, {{"auto_pad", std::string("SAME_LOWER")}})),
            (Shape{3, 12, 1, 4}));
  EXPECT_EQ(kernel_after(convolution(4, {{"pads", Ints{0, 2, 1, 0}}, {"dilations", Ints{2, 1}}})),
            (Shape{3, 12, 1, 4}));
}

TEST(JoinTaps, TensorCoresReadThemToo) {
  PassOptions wanted = options(Precision::kFloat16);
  wanted.target = *parse_target("cuda --arch=sm_80", 0);
  EXPECT_EQ(kernel_after(convolution(3, {}), wanted), (Shape{3, 12, 1, 4}));
  wanted.precision = Precision::kFloat32;
  EXPECT_EQ(kernel_after(convolution(3, {}), wanted), (Shape{3, 3, 3, 4}));
}

TEST(JoinTaps, OthersStay) {
  EXPECT_EQ(kernel_after(convolution(16, {})), (Shape{3, 3, 16, 4}));
  EXPECT_EQ(kernel_after(convolution(4, {}, 2)), (Shape{3, 3, 2, 4}));
  EXPECT_EQ(kernel_after(convolution(4, {{"dilations", Ints{1, 2}}})), (Shape{3, 3, 4, 4}));
  EXPECT_EQ(kernel_after(convolution(3, {}), options(Precision::kFloat32)), (Shape{3, 3, 3, 4}));
}

}  // namespace
}  // namespace pruner
