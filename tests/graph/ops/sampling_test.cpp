#include <gmock/gmock.h>

#include "graph/small_graph.h"

namespace pruner {
namespace {

using testing::HasSubstr;
using V = std::vector<double>;

Attribute text(const char* value) { return std::string(value); }

Tensor sample(const Tensor& x, V places, const char* mode, const char* padding, int64_t align) {
  const int64_t n = std::ssize(places);
  V grid;
  for (const double place : places) grid.insert(grid.end(), {place, 0});
  return run_op("GridSample",
                {x, floats({1, 1, n, 2}, grid)},
                {{"mode", text(mode)}, {"padding_mode", text(padding)}, {"align_corners", align}});
}

// Along a row of four the places -1, 1/3 and 1 are elements 0, 2 and 3 where corners are aligned,
// and -1/2, 2 1/6 and 3 1/2 otherwise.
TEST(GridSample, PlacesAndPads) {
  const Tensor x = floats({1, 1, 1, 4}, {1, 2, 4, 8});
  const double third = 1.0 / 3;
  const auto at = [&](const char* mode, const char* padding, int64_t align, V places) {
    return sample(x, std::move(places), mode, padding, align);
  };
  const auto row = [](V values) {
    const int64_t n = std::ssize(values);
    return floats({1, 1, 1, n}, std::move(values));
  };
  expect_near(at("linear", "zeros", 1, {-1, 0, third, 1}), row({1, 3, 4, 8}));
  expect_near(at("linear", "zeros", 0, {-1, third, 1}), row({0.5, 4 + 4.0 / 6, 4}));
  expect_near(at("linear", "border", 0, {-1, third, 3}), row({1, 4 + 4.0 / 6, 8}));
  // 5 is at 9 of the aligned: there, back and there again; 2 is at 4.5, so at 1.5.
  expect_near(at("linear", "reflection", 1, {5, 2}), row({8, 3}), 1e-4);
  expect_near(at("nearest", "zeros", 1, {-1, 0.3, 1, 1.8}), row({1, 4, 8, 0}));
  // Between 1 and 2 of four Keys' weights are -3/32, 19/32, 19/32 and -3/32.
  expect_near(at("cubic", "zeros", 1, {0}), row({(19 * 6 - 3 * 9) / 32.0}));
  // Half an element before the first one the pixels are 1, 1, 1 and 2, as torch has it.
  expect_near(at("cubic", "border", 0, {-1}), row({(19 * 2 - 3 * 3) / 32.0}));
}

TEST(GridSample, IsTheDataOnItsOwnGrid) {
  const Tensor x = waves({2, 3, 2, 3, 4});
  Tensor grid(DType::kFloat32, {2, 2, 3, 4, 3});
  for (int64_t i = 0; i < 48; ++i) {
    grid.set(3 * i, 2.0 * double(i % 4) / 3 - 1);
    grid.set(3 * i + 1, double(i / 4 % 3) - 1);
    grid.set(3 * i + 2, 2.0 * double(i / 12 % 2) - 1);
  }
  for (const char* mode : {"linear", "nearest"}) {
    const Attributes a = {{"mode", text(mode)}, {"align_corners", int64_t{1}}};
    expect_near(run_op("GridSample", {x, grid}, a), x, 1e-4);
  }
  EXPECT_THAT(refusal("GridSample", {x, grid}, {{"mode", text("cubic")}}),
              HasSubstr("mode is \"cubic\", expected linear, nearest or, of images, cubic"));
}

// A ramp's mean over a bin is the ramp at its centre.
TEST(RoiAlign, PoolsRegions) {
  Tensor x(DType::kFloat32, {2, 1, 6, 8});
  for (int64_t i = 0; i < x.num_elements(); ++i) x.set(i, double(i % 8) + 10 * double(i / 48));
  const Tensor regions = floats({2, 4}, {1, 1, 5, 4, 2, 0, 6, 5});
  const Attributes a = {
      {"output_height", int64_t{1}}, {"output_width", int64_t{2}}, {"spatial_scale", 1.0}};
  const Tensor y = run_op("RoiAlign", {x, regions, integers({2}, {1, 0})}, a);
  EXPECT_EQ(y.shape(), (Ints{2, 1, 1, 2}));
  expect_near(y, floats({2, 1, 1, 2}, {11.5, 13.5, 2.5, 4.5}));
  EXPECT_THAT(refusal("RoiAlign", {x, regions, integers({1}, {0})}, a),
              HasSubstr("regions of 2x4 in images 1 of 2x1x6x8 to 1x2"));
}

// The numbers are those of ONNX's test_col2im.
TEST(Col2Im, AddsColumnsUp) {
  Tensor columns(DType::kFloat32, {1, 5, 5});
  for (int64_t i = 0; i < 25; ++i) columns.set(i, double(i / 5 + 1 + i % 5 * 5));
  const Tensor image = run_op("Col2Im", {columns, Ints{5, 5}, Ints{1, 5}});
  EXPECT_EQ(image.shape(), (Ints{1, 1, 5, 5}));
  for (int64_t i = 0; i < 25; ++i) EXPECT_EQ(image.get(i), double(i + 1));
  // Overlapping windows of two, each all ones.
  const Tensor ones = floats({1, 2, 3}, {1, 1, 1, 1, 1, 1});
  EXPECT_EQ(values_of(run_op("Col2Im", {ones, Ints{1, 4}, Ints{1, 2}})), (V{1, 2, 2, 1}));
  EXPECT_THAT(refusal("Col2Im", {ones, Ints{1, 5}, Ints{1, 2}}),
              HasSubstr("columns of 1x2x3 for 4 blocks of 2 elements"));
}

}  // namespace
}  // namespace pruner
