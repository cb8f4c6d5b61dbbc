#include <limits>

#include "graph/small_graph.h"
#include "support/rng.h"

namespace pruner {
namespace {

/// A transposed convolution, and what it reads.
struct Case {
  Ints in, kernel;
  Attributes attributes;
  int64_t group = 1;
  bool constant = true;
};

constexpr int64_t kChannels = 6;

ValueId transposed(NetworkBuilder& b, const Case& c) {
  Ints data = {2, kChannels}, weight = {kChannels, 4};
  data.insert(data.end(), c.in.begin(), c.in.end());
  weight.insert(weight.end(), c.kernel.begin(), c.kernel.end());
  std::vector<ValueId> inputs = {b.input("x", data, DType::kFloat32)};
  inputs.push_back(c.constant ? b.constant("w", waves(weight, 1))
                              : b.input("w", weight, DType::kFloat32));
  inputs.push_back(b.constant("b", waves({4 * c.group}, 2)));
  Attributes attributes = c.attributes;
  attributes["group"] = c.group;
  return b.node("ConvTranspose", inputs, attributes);
}

Ints input_shape(const Case& c) {
  Ints shape = {2, kChannels};
  shape.insert(shape.end(), c.in.begin(), c.in.end());
  return shape;
}

/// Returns the operators after the passes, which compute what the node computes: also that a datum
/// is infinite where a tap reads it, and nowhere else.
std::string passed(const Case& c) {
  NetworkBuilder b("phases");
  const Graph graph = b.finish({{transposed(b, c), "y"}});
  std::vector<Tensor> inputs = {waves(input_shape(c))};
  inputs[0].set(inputs[0].num_elements() / 2, std::numeric_limits<double>::infinity());
  if (!c.constant) inputs.push_back(waves(graph[graph.inputs[1]].shape, 1));
  run_graph(graph, inputs);
  return operators(run_graph_passes(graph));
}

const std::string kPhases = "Transpose ConvTransposePhases Reshape Transpose";

TEST(SplitPhases, ComputesEachPhaseByItsTaps) {
  const Ints two = {2, 2}, one = {1, 1, 1, 1};
  EXPECT_EQ(passed({{4, 5}, {4, 4}, {{"strides", two}, {"pads", one}}}), kPhases);
  EXPECT_EQ(passed({{4, 5}, {2, 2}, {{"strides", two}}}), kPhases);
  EXPECT_EQ(passed({{4, 5}, {2, 4}, {{"strides", Ints{1, 2}}}}), kPhases);
  EXPECT_EQ(passed({{3, 2}, {16, 16}, {{"strides", Ints{8, 8}}, {"pads", Ints{4, 4, 4, 4}}}}),
            kPhases);
  EXPECT_EQ(passed({{4, 5}, {4, 4}, {{"strides", two}, {"pads", one}}, 3}), kPhases);
  EXPECT_EQ(passed({{4, 5}, {4, 4}, {{"strides", two}, {"pads", one}}, kChannels}), kPhases);
  EXPECT_EQ(passed({{5}, {4}, {{"strides", Ints{2}}, {"pads", Ints{1, 1}}}}), kPhases);
  EXPECT_EQ(passed({{2, 3, 2}, {2, 2, 2}, {{"strides", Ints{2, 2, 2}}}}), kPhases);
  EXPECT_EQ(passed({{4, 4}, {4, 2}, {{"strides", two}, {"auto_pad", std::string("SAME_UPPER")}}}),
            kPhases);
}

TEST(SplitPhases, ComputesPhasesOfFewerTapsApart) {
  // 3 taps of stride 2: phases of one tap and of two.
  const auto large = [](Ints in, Ints kernel, Attributes attributes, int64_t channels) {
    NetworkBuilder b("phases");
    Ints data = {1, channels}, weight = {channels, channels};
    data.insert(data.end(), in.begin(), in.end());
    weight.insert(weight.end(), kernel.begin(), kernel.end());
    const ValueId x = b.input("x", data, DType::kFloat32);
    const ValueId y = b.node("ConvTranspose", {x, b.constant("w", waves(weight))}, attributes);
    const Graph graph = b.finish({{b.node("Relu", {y}), "y"}});
    run_graph(graph, {waves(data, 1)});
    return operators(run_graph_passes(graph));
  };
  const auto times = [](int n, const std::string& op) {
    std::string text;
    for (int i = 0; i < n; ++i) text += " " + op;
    return text;
  };
  const Ints two = {2, 2};
  const Attributes doubles = {
      {"strides", two}, {"pads", Ints{1, 1, 1, 1}}, {"output_padding", Ints{1, 1}}};
  EXPECT_EQ(large({22, 22}, {3, 3}, doubles, 32),
            "Transpose" + times(4, "ConvTransposePhases") + times(4, "Relu") + times(3, "Concat") +
                " Reshape Transpose");
  // Phases of 2, 1 and 2 taps.
  EXPECT_EQ(large({500}, {5}, {{"strides", Ints{3}}, {"pads", Ints{1, 1}}}, 48),
            "Transpose" + times(3, "ConvTransposePhases") + times(3, "Relu") +
                " Concat Reshape Transpose");
  EXPECT_EQ(large({22, 22}, {4, 4}, {{"strides", two}}, 32),
            "Transpose ConvTransposePhases Relu Reshape Transpose");
}

TEST(SplitPhases, CutsOffWhatTheLastPhaseHasTooMuch) {
  const std::string cut = "Transpose ConvTransposePhases Reshape Slice Transpose";
  const Ints two = {2, 2};
  EXPECT_EQ(passed({{4, 4}, {4, 4}, {{"strides", two}, {"output_padding", Ints{1, 1}}}}), cut);
  EXPECT_EQ(passed({{4, 4}, {3, 3}, {{"strides", Ints{3, 3}}, {"pads", Ints{1, 0, 0, 1}}}}), cut);
  EXPECT_EQ(passed({{4, 4}, {6, 4}, {{"strides", Ints{3, 2}}, {"pads", Ints{3, 2, 0, 1}}}}), cut);
}

TEST(SplitPhases, TurnsStrideOneIntoAConvolution) {
  const std::string conv = "Transpose Conv Transpose";
  EXPECT_EQ(passed({{4, 5}, {3, 3}, {}}), conv);
  EXPECT_EQ(passed({{6, 5}, {3, 2}, {{"pads", Ints{1, 0, 2, 1}}}, 2}), conv);
  EXPECT_EQ(passed({{6, 5}, {3, 2}, {{"pads", Ints{2, 0, 2, 0}}, {"dilations", Ints{2, 3}}}}),
            conv);
  EXPECT_EQ(passed({{6, 5}, {3, 3}, {}, kChannels}), conv);
}

TEST(SplitPhases, LeavesWhatHasNoPhases) {
  const std::string same = "Transpose ConvTranspose Transpose";
  const Ints two = {2, 2};
  EXPECT_EQ(passed({{4, 5}, {3, 3}, {{"strides", two}, {"dilations", two}}}), same);
  EXPECT_EQ(passed({{4, 5}, {3, 3}, {{"strides", two}}}), same);  // few products
  EXPECT_EQ(passed({{4, 5}, {1, 1}, {{"strides", two}}}), same);  // phases without a tap
  EXPECT_EQ(passed({{4, 5}, {2, 2}, {{"strides", two}}, 1, false}),
            "Transpose Transpose ConvTranspose Transpose");
  EXPECT_EQ(passed({{4, 5}, {2, 2}, {{"pads", Ints{2, 0, 0, 0}}}}), same);  // cuts all of a tap
  EXPECT_EQ(passed({{4, 5}, {2, 2}, {{"strides", two}, {"output_shape", Ints{11, 10}}}}), same);
}

TEST(SplitPhases, TakesElementwiseNodesAlong) {
  const Case c = {{4, 5}, {4, 4}, {{"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}}};
  NetworkBuilder b("phases");
  const ValueId y = b.node("Relu", {transposed(b, c)});
  const ValueId scale = b.constant("scale", waves({1, 4, 1, 1}, 3));
  const ValueId residual = b.input("residual", {2, 4, 8, 10}, DType::kFloat32);
  const ValueId sum = b.node("Add", {b.node("Mul", {y, scale}), residual});
  const Graph graph = b.finish({{b.node("Tanh", {sum}), "y"}});
  run_graph(graph, {waves(input_shape(c)), waves({2, 4, 8, 10}, 4)});
  EXPECT_EQ(operators(run_graph_passes(graph)),
            "Transpose ConvTransposePhases Relu Mul Transpose Reshape Add Tanh Reshape Transpose");
  // What differs along rows stays behind the Reshape.
  NetworkBuilder rows("phases");
  const ValueId x = transposed(rows, c);
  const ValueId mask = rows.constant("mask", waves({1, 1, 1, 10}, 3));
  const Graph masked = rows.finish({{rows.node("Mul", {x, mask}), "y"}});
  run_graph(masked, {waves(input_shape(c))});
  EXPECT_EQ(operators(run_graph_passes(masked)),
            "Transpose ConvTransposePhases Reshape Mul Transpose");
}

TEST(SplitPhases, JoinsImagesOfOtherRunsBehindTheirReshapes) {
  // Kernel 7 of stride 5: phases of 1, 2, 2 taps from pad 4 on, and of 1, 3, 1 in a row from pad 1.
  NetworkBuilder b("phases");
  constexpr int64_t kWide = 64;
  const ValueId x = b.input("x", {1, kWide, 200}, DType::kFloat32);
  const auto up = [&](const std::string& name, int64_t pad) {
    return b.node("ConvTranspose",
                  {x, b.constant(name, waves({kWide, kWide, 7}, static_cast<double>(pad)))},
                  {{"strides", Ints{5}}, {"pads", Ints{pad, 7 - pad}}});
  };
  const ValueId sum = b.node("Add", {up("v", 4), up("w", 1)});
  const Graph graph = b.finish({{sum, "y"}});
  EXPECT_GT(graph.nodes.size(), 2u);
  run_graph(graph, {waves({1, kWide, 200}, 1)});
}

TEST(SplitPhases, IsRightForDrawnAttributes) {
  Rng rng(7);
  const auto between = [&](int64_t low, int64_t high) { return low + rng.below(high - low + 1); };
  int phases = 0;
  for (int draw = 0; draw < 150; ++draw) {
    const auto rank = static_cast<size_t>(between(1, 2));
    Case c;
    Ints strides, pads, padding;
    for (size_t d = 0; d < rank; ++d) {
      c.in.push_back(between(3, 6));
      strides.push_back(between(1, 4));
      c.kernel.push_back(between(0, 1) == 0 ? between(1, 7) : strides.back() * between(1, 2));
      padding.push_back(between(0, strides.back() - 1));
    }
    for (size_t d = 0; d < 2 * rank; ++d)
      pads.push_back(between(0, std::min<int64_t>(c.kernel[d % rank] - 1, 2)));
    c.attributes = {{"strides", strides}, {"pads", pads}, {"output_padding", padding}};
    c.group = between(0, 3) == 0 ? 2 : 1;
    SCOPED_TRACE(draw);
    phases += passed(c).find("Phases") != std::string::npos ? 1 : 0;
  }
  EXPECT_GT(phases, 40);
}

}  // namespace
}  // namespace pruner
