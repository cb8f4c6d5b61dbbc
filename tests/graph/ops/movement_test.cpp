#include <gmock/gmock.h>

#include <limits>

#include "graph/small_graph.h"

namespace pruner {
namespace {

using testing::HasSubstr;
using V = std::vector<double>;

const Tensor kGrid = floats({2, 3}, {0, 1, 2, 3, 4, 5});

TEST(Transpose, MovesDimensions) {
  EXPECT_EQ(values_of(run_op("Transpose", {kGrid})), (V{0, 3, 1, 4, 2, 5}));
  const Tensor y = run_op("Transpose", {waves({2, 3, 4})}, {{"perm", Ints{2, 0, 1}}});
  EXPECT_EQ(y.shape(), (Ints{4, 2, 3}));
  EXPECT_EQ(y.get(1 * 6 + 1 * 3 + 2), waves({2, 3, 4}).get(1 * 12 + 2 * 4 + 1));
  EXPECT_THAT(refusal("Transpose", {kGrid}, {{"perm", Ints{0, 0}}}),
              HasSubstr("perm is no order of the input's 2 dimensions"));
}

TEST(Concat, JoinsAlongItsAxis) {
  const Tensor b = floats({2, 1}, {10, 20});
  EXPECT_EQ(values_of(run_op("Concat", {kGrid, b, b}, {{"axis", int64_t{1}}})),
            (V{0, 1, 2, 10, 10, 3, 4, 5, 20, 20}));
  EXPECT_EQ(values_of(run_op("Concat", {kGrid, kGrid}, {{"axis", int64_t{-2}}})),
            (V{0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5}));
  EXPECT_THAT(refusal("Concat", {kGrid, b}, {{"axis", int64_t{0}}}),
              HasSubstr("inputs 2x3 and 2x1 do not join along axis 0"));
}

TEST(Slice, TakesEveryStep) {
  const auto slice = [](Ints starts, Ints ends, Ints axes, Ints steps) {
    return values_of(run_op("Slice", {kGrid, starts, ends, axes, steps}));
  };
  const int64_t far = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(slice({1}, {3}, {1}, {1}), (V{1, 2, 4, 5}));
  EXPECT_EQ(slice({0, -2}, {far, far}, {0, 1}, {1, 1}), (V{1, 2, 4, 5}));
  EXPECT_EQ(slice({0}, {3}, {-1}, {2}), (V{0, 2, 3, 5}));
  EXPECT_EQ(slice({-1}, {-far}, {1}, {-1}), (V{2, 1, 0, 5, 4, 3}));
  EXPECT_THAT(refusal("Slice", {kGrid, Ints{0}, Ints{1}, Ints{2}}),
              HasSubstr("axis 2 is not one of the input's 2 dimensions"));
  EXPECT_THAT(refusal("Slice", {kGrid, Ints{2}, Ints{1}, Ints{0}}),
              HasSubstr("the output has no elements: 0x3"));
  EXPECT_THAT(refusal("Slice", {kGrid, integers({1}, {0}), Ints{1}}),
              HasSubstr("starts is computed at run time; it has to be a constant"));
}

TEST(Split, CutsIntoParts) {
  NetworkBuilder b("split");
  const ValueId x = b.input("x", {2, 3}, DType::kFloat32);
  Graph graph = b.finish({});
  for (const char* name : {"a", "b"}) {
    graph.values.push_back({name, {}, {}, std::nullopt});
    graph.outputs.push_back(ValueId{static_cast<int32_t>(graph.values.size()) - 1});
  }
  graph.nodes.push_back({"Split", "", {x}, graph.outputs, {{"axis", int64_t{1}}}});
  ASSERT_TRUE(infer_node(graph, graph.nodes[0]).ok());
  const std::vector<Tensor> parts = run_graph(graph, {kGrid});
  EXPECT_EQ(values_of(parts[0]), (V{0, 1, 3, 4}));
  EXPECT_EQ(values_of(parts[1]), (V{2, 5}));
}

TEST(Pad, SurroundsOrCuts) {
  const Tensor x = floats({3}, {1, 2, 3});
  const auto pad = [&](Ints pads, const char* mode) {
    return values_of(run_op("Pad", {x, pads}, {{"mode", std::string(mode)}}));
  };
  EXPECT_EQ(pad({1, 2}, "constant"), (V{0, 1, 2, 3, 0, 0}));
  EXPECT_EQ(pad({1, -1}, "constant"), (V{0, 1, 2}));
  EXPECT_EQ(pad({2, 1}, "edge"), (V{1, 1, 1, 2, 3, 3}));
  EXPECT_EQ(pad({2, 2}, "reflect"), (V{3, 2, 1, 2, 3, 2, 1}));
  const Operand seven = Operand::weight(floats({}, {7}));
  EXPECT_EQ(values_of(run_op("Pad", {x, Ints{0, 1}, seven})), (V{1, 2, 3, 7}));
  EXPECT_THAT(refusal("Pad", {x, Ints{1}}), HasSubstr("pads has 1 elements, expected 2"));
}

TEST(Gather, ReadsFromTheEndToo) {
  const Tensor rows = integers({2, 1}, {1, -2});
  EXPECT_EQ(values_of(run_op("Gather", {kGrid, rows})), (V{3, 4, 5, 0, 1, 2}));
  const Tensor column =
      run_op("Gather", {kGrid, integers({}, {2}, DType::kInt32)}, {{"axis", int64_t{1}}});
  EXPECT_EQ(column.shape(), Ints{2});
  EXPECT_EQ(values_of(column), (V{2, 5}));
  EXPECT_THAT(refusal("Gather", {kGrid, Ints{2}}), HasSubstr("index 2 is outside an extent of 2"));
}

TEST(Broadcasting, ExpandAndTileRepeat) {
  const Tensor x = floats({2, 1}, {1, 2});
  EXPECT_EQ(values_of(run_op("Expand", {x, Ints{1, 2, 3}})), (V{1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(values_of(run_op("Expand", {x, Ints{1}})), (V{1, 2}));
  EXPECT_EQ(values_of(run_op("Tile", {x, Ints{2, 2}})), (V{1, 1, 2, 2, 1, 1, 2, 2}));
}

}  // namespace
}  // namespace pruner
