#include "graph/passes.h"

#include "graph/group_name.h"
#include "graph/partition.h"
#include "graph/small_graph.h"

namespace pruner {
namespace {

Target x86_target(bool masked_vectors = true) {
  Target target;
  target.isa = Isa::kX86;
  target.masked_vectors = masked_vectors;
  return target;
}

ValueId depthwise(NetworkBuilder& b, ValueId x, int64_t multiplier = 1) {
  const int64_t c = b.shape(x)[1];
  const ValueId w = b.random("w", {c * multiplier, 1, 3, 3}, 0, 1);
  const ValueId bias = b.random("bias", {c * multiplier}, 0, 1);
  return b.node("Conv", {x, w, bias}, {{"group", c}, {"pads", Ints{1, 1, 1, 1}}});
}

ValueId conv(NetworkBuilder& b, ValueId x) {
  const ValueId w = b.random("w", {20, b.shape(x)[1], 2, 3}, 0, 1);
  const ValueId bias = b.random("bias", {20}, 0, 1);
  return b.node("Conv", {x, w, bias}, {{"pads", Ints{1, 0, 0, 2}}, {"strides", Ints{1, 2}}});
}

ValueId max_pool(NetworkBuilder& b, ValueId x, int64_t pad = 0) {
  return b.node(
      "MaxPool",
      {x},
      {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{pad, pad, pad, pad}}});
}

// Returns the operators of a network of one input after the passes; the network computes the same.
std::string passed(ValueId (*build)(NetworkBuilder&, ValueId),
                   const Target& target = x86_target(),
                   int64_t channels = 16) {
  const std::vector<int64_t> shape = {2, channels, 9, 11};
  NetworkBuilder b("layout");
  const ValueId x = b.input("x", shape, DType::kFloat32);
  const Graph graph = b.finish({{build(b, x), "y"}});
  const Graph after = run_graph_passes(graph, {target});
  const Result<std::vector<Tensor>> expected = interpret_graph(graph, {{waves(shape)}});
  const Result<std::vector<Tensor>> found = interpret_graph(after, {{waves(shape)}});
  EXPECT_TRUE(expected.ok() && found.ok());
  expect_near((*found)[0], (*expected)[0]);
  return operators(after);
}

TEST(ChannelsLast, LeavesImagesWhoseChannelsNothingMixes) {
  EXPECT_EQ(passed([](auto& b, ValueId x) {
              const ValueId y = b.node("Relu", {depthwise(b, x, 2)});
              return b.node("Sigmoid", {max_pool(b, b.node("Add", {y, y}), 1)});
            }),
            "Conv Relu Add MaxPool Sigmoid");
  EXPECT_EQ(
      passed([](auto& b, ValueId x) {
        return b.node(
            "AveragePool",
            {x},
            {{"kernel_shape", Ints{2, 3}}, {"pads", Ints{0, 1, 1, 1}}, {"ceil_mode", int64_t{1}}});
      }),
      "AveragePool");
}

TEST(ChannelsLast, MovesImagesThatAConvolutionOrATransposeBordersOn) {
  EXPECT_EQ(passed([](auto& b, ValueId x) { return conv(b, b.node("Relu", {max_pool(b, x)})); }),
            "Transpose MaxPool Relu Conv Transpose");
  EXPECT_EQ(passed([](auto& b, ValueId x) {
              return b.node("Transpose", {max_pool(b, x)}, {{"perm", Ints{0, 2, 3, 1}}});
            }),
            "Transpose MaxPool");
}

TEST(ChannelsLast, LeavesImagesOfFewChannels) {
  const auto build = [](auto& b, ValueId x) { return max_pool(b, b.node("Relu", {conv(b, x)})); };
  EXPECT_EQ(passed(build, x86_target(), 3), "Conv Relu MaxPool");
  EXPECT_EQ(passed(build, x86_target(false), 3), "Transpose Conv Relu MaxPool Transpose");
  EXPECT_EQ(passed(build), "Transpose Conv Relu MaxPool Transpose");
}

TEST(ChannelsLast, LeavesPaddedWindowsWhereVectorsHaveMasks) {
  const auto padded = [](auto& b, ValueId x) { return max_pool(b, x, 1); };
  EXPECT_EQ(passed(padded, x86_target(false)), "MaxPool");
  Target arm;
  arm.isa = Isa::kArm;
  EXPECT_EQ(passed(padded, arm), "Transpose MaxPool Transpose");
  EXPECT_EQ(passed([](auto& b, ValueId x) { return max_pool(b, x); }, arm), "MaxPool");
}

TEST(ChannelsLast, MovesImagesOnAGpu) {
  EXPECT_EQ(passed([](auto& b, ValueId x) { return max_pool(b, x); },
                   *parse_target("cuda --arch=sm_80", 0)),
            "Transpose MaxPool Transpose");
}

TEST(ChannelsLast, NamesSayHowImagesLie) {
  NetworkBuilder b("layout");
  const ValueId x = b.input("x", {1, 4, 8, 8}, DType::kFloat32);
  const Graph graph = b.finish({{max_pool(b, depthwise(b, x, 2), 1), "y"}});
  const Result<Partition> p = partition(graph, x86_target());
  ASSERT_TRUE(p.ok());
  EXPECT_EQ(p->groups[0].name, "depthwise_conv2d_nchw 1x4x8x8 3x3 s1 p1 -> 8 +bias ...");
  EXPECT_EQ(p->groups[1].name, "max_pool2d_nchw 1x8x8x8 3x3 s2 p1");
}

}  // namespace
}  // namespace pruner
