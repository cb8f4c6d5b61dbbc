#include <gmock/gmock.h>

#include <numeric>

#include "graph/small_graph.h"

namespace pruner {
namespace {

using testing::HasSubstr;
using V = std::vector<double>;

Attribute text(const char* value) { return std::string(value); }

Tensor count(Ints shape) {
  Tensor tensor(DType::kFloat32, std::move(shape));
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.set(i, static_cast<double>(i));
  return tensor;
}

// The numbers are those of the examples of ONNX's GatherND.
TEST(GatherNd, GivesWhatOnnxsExamplesSay) {
  const Tensor square = floats({2, 2}, {0, 1, 2, 3}), cube = count({2, 2, 2});
  const auto gather = [](const Tensor& data, Tensor indices, int64_t batch) {
    return values_of(run_op("GatherND", {data, std::move(indices)}, {{"batch_dims", batch}}));
  };
  EXPECT_EQ(gather(square, integers({2, 2}, {0, 0, 1, 1}), 0), (V{0, 3}));
  EXPECT_EQ(gather(square, integers({2, 1}, {1, -2}), 0), (V{2, 3, 0, 1}));
  EXPECT_EQ(gather(cube, integers({2, 2}, {0, 1, 1, 0}), 0), (V{2, 3, 4, 5}));
  EXPECT_EQ(gather(cube, integers({2, 1}, {1, 0}), 1), (V{2, 3, 4, 5}));
  EXPECT_THAT(refusal("GatherND", {square, integers({1, 3}, {0, 0, 0})}),
              HasSubstr("indices of 1x3 for data of 2x2 with batch_dims 0"));
}

TEST(OneHot, IsOnAtItsIndex) {
  const Tensor values = floats({2}, {2, 5});
  const auto one_hot = [&](Tensor indices, int64_t axis) {
    return run_op("OneHot", {std::move(indices), Ints{3}, values}, {{"axis", axis}});
  };
  EXPECT_EQ(values_of(one_hot(integers({3}, {0, -1, 3}), -1)), (V{5, 2, 2, 2, 2, 5, 2, 2, 2}));
  const Tensor columns = one_hot(floats({2}, {1, 0}), 0);
  EXPECT_EQ(columns.shape(), (Ints{3, 2}));
  EXPECT_EQ(values_of(columns), (V{2, 5, 5, 2, 2, 2}));
  EXPECT_THAT(refusal("OneHot", {values, integers({}, {3}), values}),
              HasSubstr("depth is computed at run time"));
}

TEST(Trilu, KeepsATriangle) {
  const Tensor x = count({2, 3});
  const auto kept = [&](int64_t k, int64_t upper) {
    const Operand diagonal = Operand::weight(integers({}, {k}));
    return values_of(run_op("Trilu", {x, diagonal}, {{"upper", upper}}));
  };
  EXPECT_EQ(kept(0, 1), (V{0, 1, 2, 0, 4, 5}));
  EXPECT_EQ(kept(1, 1), (V{0, 1, 2, 0, 0, 5}));
  EXPECT_EQ(kept(-1, 0), (V{0, 0, 0, 3, 0, 0}));
  // The diagonal may be known at run time only.
  for (const int64_t k : {INT64_MIN, int64_t{-1}, int64_t{0}, int64_t{1}, INT64_MAX})
    EXPECT_EQ(values_of(run_op("Trilu", {x, integers({}, {k})})), kept(k, 1)) << k;
  EXPECT_THAT(refusal("Trilu", {x, integers({2}, {0, 1})}), HasSubstr("k has 2 elements"));
  EXPECT_EQ(values_of(run_op("Trilu", {integers({2, 2}, {1, 1, 1, 1}, DType::kBool)})),
            (V{1, 1, 0, 1}));
}

TEST(Blocks, MoveBetweenSpaceAndDepth) {
  const Tensor x = count({1, 8, 1, 2});
  for (const char* mode : {"DCR", "CRD"}) {
    const Attributes a = {{"blocksize", int64_t{2}}, {"mode", text(mode)}};
    const Tensor wide = run_op("DepthToSpace", {x}, a);
    EXPECT_EQ(wide.shape(), (Ints{1, 2, 2, 4}));
    // In channel 0 the four places of a block are 2 channels (4 elements) or 1 channel apart.
    const double step = mode == std::string("DCR") ? 4 : 2;
    EXPECT_EQ(wide.get(0), 0);
    EXPECT_EQ(wide.get(1), step);
    EXPECT_EQ(wide.get(4), 2 * step);
    EXPECT_EQ(wide.get(5), 3 * step);
    EXPECT_EQ(values_of(run_op("SpaceToDepth", {wide}, a)), values_of(x));
  }
  EXPECT_THAT(refusal("DepthToSpace", {x}, {{"blocksize", int64_t{3}}}),
              HasSubstr("blocks of 3x3 do not divide 8 channels"));
  EXPECT_THAT(refusal("SpaceToDepth", {x}, {{"blocksize", int64_t{2}}}),
              HasSubstr("a block of 2 does not divide an image of 1x2"));
}

// The numbers are those of ONNX's test_reversesequence_batch.
TEST(ReverseSequence, ReversesSomeOfEach) {
  const Tensor x = count({4, 4}), lengths = integers({4}, {1, 2, 3, 4});
  EXPECT_EQ(values_of(run_op("ReverseSequence",
                             {x, lengths},
                             {{"batch_axis", int64_t{0}}, {"time_axis", int64_t{1}}})),
            (V{0, 1, 2, 3, 5, 4, 6, 7, 10, 9, 8, 11, 15, 14, 13, 12}));
  EXPECT_EQ(values_of(run_op("ReverseSequence", {x, lengths})),
            (V{0, 5, 10, 15, 4, 1, 6, 11, 8, 9, 2, 7, 12, 13, 14, 3}));
  EXPECT_THAT(refusal("ReverseSequence", {x, integers({3}, {1, 1, 1})}),
              HasSubstr("sequence_lens is 3, expected 4"));
}

TEST(CenterCropPad, CutsAndAddsInTheMiddle) {
  const Tensor x = floats({5}, {1, 2, 3, 4, 5});
  EXPECT_EQ(values_of(run_op("CenterCropPad", {x, Ints{2}})), (V{2, 3}));
  EXPECT_EQ(values_of(run_op("CenterCropPad", {x, Ints{8}})), (V{0, 1, 2, 3, 4, 5, 0, 0}));
  const Tensor some = run_op("CenterCropPad", {count({3, 4}), Ints{2}}, {{"axes", Ints{-1}}});
  EXPECT_EQ(values_of(some), (V{1, 2, 5, 6, 9, 10}));
}

// Each update stands from its sequence's index on; a circular update goes on at the beginning.
TEST(TensorScatter, WritesFromEachIndexOn) {
  const Tensor cache = count({2, 4, 1}), update = floats({2, 2, 1}, {10, 20, 30, 40});
  const Tensor first = integers({2}, {1, 2});
  EXPECT_EQ(values_of(run_op("TensorScatter", {cache, update, first})),
            (V{0, 10, 20, 3, 4, 5, 30, 40}));
  EXPECT_EQ(values_of(run_op("TensorScatter", {cache, update})), (V{10, 20, 2, 3, 30, 40, 6, 7}));
  EXPECT_EQ(
      values_of(run_op(
          "TensorScatter", {cache, update, integers({2}, {3, 0})}, {{"mode", text("circular")}})),
      (V{20, 1, 2, 10, 30, 40, 6, 7}));
}

}  // namespace
}  // namespace pruner
