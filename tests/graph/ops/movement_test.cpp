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
  EXPECT_EQ(refusal("Slice", {kGrid, Ints{2}, Ints{1}, Ints{0}}), "");  // nothing is left
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
  EXPECT_EQ(pad({4, 2}, "wrap"), (V{3, 1, 2, 3, 1, 2, 3, 1, 2}));
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

// The numbers are those of ONNX's test_gather_elements_0, _1 and _negative_indices.
TEST(GatherElements, GivesWhatOnnxsTestsSay) {
  const Tensor square = floats({2, 2}, {1, 2, 3, 4});
  const Tensor rows = floats({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  EXPECT_EQ(values_of(run_op("GatherElements",
                             {square, integers({2, 2}, {0, 0, 1, 0}, DType::kInt32)},
                             {{"axis", int64_t{1}}})),
            (V{1, 1, 4, 3}));
  const Tensor first = integers({2, 3}, {1, 2, 0, 2, 0, 0});
  EXPECT_EQ(values_of(run_op("GatherElements", {rows, first})), (V{4, 8, 3, 7, 2, 3}));
  const Operand last = Operand::weight(integers({2, 3}, {-1, -2, 0, -2, 0, 0}));
  EXPECT_EQ(values_of(run_op("GatherElements", {rows, last})), (V{7, 5, 3, 4, 2, 3}));
}

TEST(GatherElements, IndexesAnyAxisOfAnyRank) {
  const Tensor data = waves({3, 4, 5});
  for (int64_t axis = -3; axis < 3; ++axis) {
    const auto d = static_cast<size_t>(axis < 0 ? axis + 3 : axis);
    Ints shape = {2, 3, 4};
    shape[d] = 7;
    Tensor indices(DType::kInt64, shape);
    for (int64_t i = 0; i < indices.num_elements(); ++i) {
      indices.set_int(i, i * 11 % (2 * data.shape()[d]) - data.shape()[d]);
    }
    const Tensor y = run_op("GatherElements", {data, indices}, {{"axis", axis}});
    EXPECT_EQ(y.shape(), shape);
    for (int64_t i = 0; i < y.num_elements(); ++i) {
      Ints at = {i / (shape[1] * shape[2]), i / shape[2] % shape[1], i % shape[2]};
      const int64_t index = indices.get_int(i);
      at[d] = index < 0 ? index + data.shape()[d] : index;
      EXPECT_EQ(y.get(i), data.get((at[0] * 4 + at[1]) * 5 + at[2])) << axis << " " << i;
    }
  }
}

TEST(GatherElements, NamesWhatDoesNotFit) {
  const auto refused = [](Tensor indices) {
    return refusal("GatherElements", {kGrid, Operand::weight(std::move(indices))});
  };
  EXPECT_THAT(refused(integers({1, 1}, {2})), HasSubstr("index 2 is outside an extent of 2"));
  EXPECT_THAT(refused(integers({1}, {0})), HasSubstr("indices of 1 for data of 2x3"));
  EXPECT_THAT(refused(integers({1, 4}, {0, 0, 0, 0})), HasSubstr("only axis 0 may be longer"));
  EXPECT_THAT(refused(floats({1, 1}, {0})), HasSubstr("indices are float32, expected int64"));
}

TEST(Broadcasting, ExpandAndTileRepeat) {
  const Tensor x = floats({2, 1}, {1, 2});
  EXPECT_EQ(values_of(run_op("Expand", {x, Ints{1, 2, 3}})), (V{1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(values_of(run_op("Expand", {x, Ints{1}})), (V{1, 2}));
  EXPECT_EQ(values_of(run_op("Tile", {x, Ints{2, 2}})), (V{1, 1, 2, 2, 1, 1, 2, 2}));
  EXPECT_THAT(refusal("Tile", {x, Ints{1, INT64_MAX}}),
              HasSubstr("repeats has the element 9223372036854775807"));
}

}  // namespace
}  // namespace pruner
