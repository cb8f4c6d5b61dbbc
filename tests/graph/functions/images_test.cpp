#include "graph/small_graph.h"

namespace pruner {
namespace {

using V = std::vector<double>;

TEST(DeformConv, WithoutOffsetsIsAConvolution) {
  const Tensor x = waves({1, 2, 5, 6}), w = waves({4, 1, 3, 2}, 1), bias = waves({4});
  const Attributes attributes = {{"group", int64_t{2}},
                                 {"pads", Ints{1, 0, 1, 1}},
                                 {"strides", Ints{2, 1}},
                                 {"dilations", Ints{1, 2}}};
  const Tensor expected = run_op("Conv", {x, w, bias}, attributes);
  const Tensor offset(DType::kFloat32, {1, 12, expected.shape()[2], expected.shape()[3]});
  expect_near(run_op("DeformConv", {x, w, offset, bias}, attributes), expected);
}

// A kernel of one point: the offset alone says where it reads, half outside the image too.
TEST(DeformConv, MixesTheFourPixelsAround) {
  const Tensor x = floats({1, 1, 2, 2}, {1, 2, 3, 4}), w = floats({1, 1, 1, 1}, {1});
  const Tensor offset = floats({1, 2, 2, 2}, {0.5, 0, 0, 0.5, 0.5, 0, 0.25, 0});
  const Tensor mask = floats({1, 1, 2, 2}, {1, 1, 2, 1});
  EXPECT_EQ(values_of(run_op("DeformConv", {x, w, offset})), (V{2.5, 2, 3.25, 2}));
  const Tensor bias = floats({1}, {10});
  EXPECT_EQ(values_of(run_op("DeformConv", {x, w, offset, bias, mask})), (V{12.5, 12, 16.5, 12}));
  EXPECT_EQ(refusal("DeformConv", {x, w, floats({1, 2, 1, 2}, {0, 0, 0, 0})}),
            "node \"it\": offset has the shape 1x2x1x2, expected 1x2x2x2");
}

}  // namespace
}  // namespace pruner
