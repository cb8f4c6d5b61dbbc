#include "graph/small_graph.h"
#include "support/rng.h"

namespace pruner {
namespace {

struct Cropped {
  Ints kernel, pads, dilations;
  bool operator==(const Cropped&) const = default;
};

void PrintTo(const Cropped& c, std::ostream* out) {
  *out << testing::PrintToString(c.kernel) << testing::PrintToString(c.pads)
       << testing::PrintToString(c.dilations);
}

Graph network(Ints in, Ints kernel, Attributes attributes) {
  NetworkBuilder b("crop");
  in.insert(in.begin(), {1, 2});
  kernel.insert(kernel.begin(), {3, 2});
  const ValueId x = b.input("x", in, DType::kFloat32);
  const ValueId y = b.node("Conv", {x, b.random("w", kernel, 0, 1)}, std::move(attributes));
  return b.finish({{y, "y"}});
}

// Returns the convolution of a map `in` after crop_kernels(); the result has to be the same.
Cropped cropped(const Ints& in, const Ints& kernel, const Attributes& attributes) {
  const Graph graph = network(in, kernel, attributes);
  run_graph(graph, {waves(graph[graph.inputs[0]].shape)});
  const Graph after = crop_kernels(graph);
  EXPECT_EQ(operators(after), "Conv");
  const Ints weight = after[after.nodes[0].inputs[1]].shape;
  const OpCall call{after, after.nodes[0]};
  return {{weight.begin() + 2, weight.end()}, call.integers("pads"), call.integers("dilations")};
}

TEST(CropKernels, LeavesTheTapsThatReadData) {
  const auto around = [](int64_t by) {
    return Attributes{{"pads", Ints{by, by, by, by}}, {"dilations", Ints{by, by}}};
  };
  EXPECT_EQ(cropped({5, 5}, {3, 3}, around(4)), (Cropped{{3, 3}, {4, 4, 4, 4}, {4, 4}}));
  EXPECT_EQ(cropped({5, 5}, {3, 3}, around(5)), (Cropped{{1, 1}, {0, 0, 0, 0}, {1, 1}}));
  EXPECT_EQ(cropped({5, 8}, {3, 3}, around(6)), (Cropped{{1, 3}, {0, 6, 0, 6}, {1, 6}}));
  EXPECT_EQ(cropped({5, 5}, {5, 5}, {{"pads", Ints{6, 6, 6, 6}}, {"dilations", Ints{3, 3}}}),
            (Cropped{{3, 3}, {3, 3, 3, 3}, {3, 3}}));
}

TEST(CropKernels, ResolvesAutomaticPadding) {
  EXPECT_EQ(cropped({1, 4}, {3, 3}, {{"auto_pad", "SAME_UPPER"}}),
            (Cropped{{1, 3}, {0, 1, 0, 1}, {1, 1}}));
}

TEST(CropKernels, CropsNoFurtherThanThePadding) {
  // The first two taps read padding alone, but without both the padding would be negative.
  const Attributes attributes = {{"pads", Ints{11, 0}}, {"dilations", Ints{6}}};
  EXPECT_EQ(cropped({2}, {3}, attributes), (Cropped{{2}, {5, 0}, {6}}));
}

TEST(CropKernels, ChangesNoResult) {
  Rng rng(7);
  for (int i = 0; i < 200; ++i) {
    const auto draw = [&](int64_t from, int64_t to) { return from + rng.below(to - from + 1); };
    Ints in, kernel, pads(4), strides, dilations;
    for (size_t d = 0; d < 2; ++d) {
      in.push_back(draw(1, 6));
      kernel.push_back(draw(1, 4));
      strides.push_back(draw(1, 3));
      dilations.push_back(draw(1, 7));
      const int64_t needed = (kernel[d] - 1) * dilations[d] + 1 - in[d];
      pads[d] = draw(0, 12);
      pads[d + 2] = draw(0, 6) + std::max<int64_t>(needed - pads[d], 0);
    }
    SCOPED_TRACE(testing::PrintToString(in) + testing::PrintToString(kernel) +
                 testing::PrintToString(pads) + testing::PrintToString(strides) +
                 testing::PrintToString(dilations));
    cropped(in, kernel, {{"pads", pads}, {"strides", strides}, {"dilations", dilations}});
  }
}

}  // namespace
}  // namespace pruner
