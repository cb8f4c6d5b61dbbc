#include "graph/small_graph.h"

namespace pruner {
namespace {

using V = std::vector<double>;

TEST(NhwcMaxPool, HasItsChannelsLast) {
  const Tensor x = integers({1, 2, 2, 2}, {1, -8, 2, -7, 3, -6, 4, -5}, DType::kInt8);
  EXPECT_EQ(values_of(run_op("com.microsoft::NhwcMaxPool", {x}, {{"kernel_shape", Ints{2, 2}}})),
            (V{4, -5}));
}

TEST(OrtGridSample, IsOnnxs) {
  const Tensor x = floats({1, 1, 1, 2}, {1, 3}), grid = floats({1, 1, 2, 2}, {0, 0, 1, 0});
  expect_near(run_op("com.microsoft::GridSample", {x, grid}, {{"align_corners", int64_t{1}}}),
              floats({1, 1, 1, 2}, {2, 3}));
}

// A crop's outer points lie on its edges; what lies outside of the image has a value of its own.
TEST(CropAndResize, ReadsBetweenPixels) {
  const Tensor x = floats({2, 1, 2, 2}, {0, 1, 2, 3, 10, 11, 12, 13});
  const Tensor boxes = floats({3, 4}, {0, 0, 1, 1, 0, 0.5, 1, 1.5, 0.75, 0, 0.75, 1});
  const Operand images = integers({3}, {1, 0, 0}, DType::kInt32);
  const Operand size = Operand::weight(integers({2}, {1, 2}, DType::kInt32));
  const auto run = [&](const std::string& mode) {
    return run_op("com.microsoft::CropAndResize",
                  {x, boxes, images, size},
                  {{"mode", mode}, {"extrapolation_value", -1.0}});
  };
  expect_near(run("bilinear"), floats({3, 1, 1, 2}, {11, 12, 1.5, -1, 1.5, 2.5}));
  expect_near(run("nearest"), floats({3, 1, 1, 2}, {12, 13, 3, -1, 2, 3}));
  EXPECT_EQ(refusal("com.microsoft::CropAndResize",
                    {x, boxes, images, integers({2}, {1, 2}, DType::kInt32)}),
            "node \"it\": crop_size is computed at run time; it has to be a constant");
}

}  // namespace
}  // namespace pruner
