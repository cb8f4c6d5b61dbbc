#include "graph/small_graph.h"
#include "support/rng.h"

namespace pruner {
namespace {

/// A convolution, and what it reads.
struct Case {
  Ints in, kernel;
  Attributes attributes;
  int64_t channels = 64, group = 1;
  DType dtype = DType::kFloat32;
  bool constant = true, bias = false;
};

Graph network(const Case& c) {
  NetworkBuilder b("split");
  Ints data = {1, c.channels}, weight = {32 * c.group, c.channels / c.group};
  data.insert(data.end(), c.in.begin(), c.in.end());
  weight.insert(weight.end(), c.kernel.begin(), c.kernel.end());
  std::vector<ValueId> inputs = {b.input("x", data, c.dtype)};
  if (!c.constant) {
    inputs.push_back(b.input("w", weight, c.dtype));
  } else {
    Tensor w(c.dtype, weight);
    const Tensor values = waves(weight, 1);
    for (int64_t i = 0; i < w.num_elements(); ++i) w.set(i, values.get(i));
    inputs.push_back(b.constant("w", std::move(w)));
  }
  if (c.bias) inputs.push_back(b.random("b", {weight[0]}, 0, 1));
  Attributes attributes = c.attributes;
  attributes["group"] = c.group;
  return b.finish({{b.node("Conv", inputs, attributes), "y"}});
}

std::string split(const Case& c) { return operators(split_kernels(network(c))); }

Attributes dilated(int64_t by) {
  return {{"pads", Ints{by, by, by, by}}, {"dilations", Ints{by, by}}};
}

TEST(SplitKernels, SumsTapsOverTheOutputsThatReadData) {
  // The middle one of three taps reads data for all 70 outputs, the others for 10.
  const Case row = {{1, 70}, {1, 3}, {{"pads", Ints{0, 60, 0, 60}}, {"dilations", Ints{1, 60}}}};
  EXPECT_EQ(split(row), "Conv Slice Conv Pad Add Slice Conv Pad Add");
  const Graph graph = split_kernels(network(row));
  EXPECT_EQ(graph[graph.nodes[2].outputs[0]].shape, (Ints{1, 32, 1, 10}));
  run_graph(network(row), {waves({1, 64, 1, 70})});
}

TEST(SplitKernels, LeavesWhatGainsNothing) {
  EXPECT_NE(split({{9, 9}, {3, 3}, dilated(6)}), "Conv");
  EXPECT_EQ(split({{9, 9}, {3, 3}, dilated(1)}), "Conv");                          // little padding
  EXPECT_EQ(split({{7, 7}, {3, 3}, dilated(6)}), "Conv");                          // few outputs
  EXPECT_EQ(split({{9, 9}, {3, 3}, dilated(6), 8}), "Conv");                       // few channels
  EXPECT_EQ(split({{9, 9}, {3, 3}, dilated(6), 128, 2}), "Conv");                  // groups
  EXPECT_EQ(split({{9, 9}, {3, 3}, dilated(6), 64, 1, DType::kFloat16}), "Conv");  // rounds
  EXPECT_EQ(split({{9, 9}, {3, 3}, dilated(6), 64, 1, DType::kFloat32, false}), "Conv");
  EXPECT_EQ(split({{9, 9}, {4, 4}, dilated(6)}), "Conv");  // many taps
  // No tap that all outputs have.
  EXPECT_EQ(split({{9, 9}, {2, 2}, {{"pads", Ints{4, 4, 4, 4}}, {"dilations", Ints{8, 8}}}}),
            "Conv");
}

TEST(SplitKernels, ChangesNoResult) {
  Rng rng(3);
  int split_ones = 0;
  for (int i = 0; i < 24; ++i) {
    const auto draw = [&](int64_t from, int64_t to) { return from + rng.below(to - from + 1); };
    Case c;
    Ints pads(4), strides, dilations;
    for (size_t d = 0; d < 2; ++d) {
      strides.push_back(draw(1, 2));
      c.in.push_back(draw(8, 10) * strides[d]);
      c.kernel.push_back(2 * draw(0, 1) + 1);
      dilations.push_back(draw(4, 12));
      // The first, second or third tap reads data for all outputs.
      pads[d] = draw(0, c.kernel[d] - 1) * dilations[d];
      pads[d + 2] = (c.kernel[d] - 1) * dilations[d] - pads[d];
    }
    c.bias = draw(0, 1) == 1;
    c.attributes = {{"pads", pads}, {"strides", strides}, {"dilations", dilations}};
    SCOPED_TRACE(testing::PrintToString(c.in) + testing::PrintToString(c.kernel) +
                 testing::PrintToString(pads) + testing::PrintToString(strides) +
                 testing::PrintToString(dilations));
    split_ones += split(c) != "Conv";
    const Graph graph = network(c);
    run_graph(graph, {waves(graph[graph.inputs[0]].shape)});
  }
  EXPECT_GE(split_ones, 8);
}

}  // namespace
}  // namespace pruner
