#include <gmock/gmock.h>

#include <cmath>

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

// Bins with more samples than are placed at a time, many channels, regions of which parts, nearly
// all or all lie outside, and one whose rows descend: beside the mean, or the greatest part, of
// what sampling one by one gives.
TEST(RoiAlign, IsWhatSamplesOneByOneAre) {
  constexpr int64_t kChannels = 5, kHeight = 30, kWidth = 40, kRows = 3, kColumns = 2;
  const Tensor x = waves({2, kChannels, kHeight, kWidth});
  const V corners = {2.3, 1.7, 9.1, 8.8, -4,   -3,   60,  50,  30.5, 20.5, 30.6, 20.9,
                     90,  90,  95,  99,  -300, -500, 700, 400, 3,    25,   35,   4};
  const Tensor regions = floats({6, 4}, corners);
  const auto at = [&](int64_t image, int64_t c, double row, double column) -> V {
    if (row < -1 || row > kHeight || column < -1 || column > kWidth) return {0, 0, 0, 0};
    row = std::max(row, 0.0);
    column = std::max(column, 0.0);
    const auto top = std::min<int64_t>(static_cast<int64_t>(row), kHeight - 1);
    const auto left = std::min<int64_t>(static_cast<int64_t>(column), kWidth - 1);
    const double down = top == kHeight - 1 ? 0 : row - static_cast<double>(top);
    const double right = left == kWidth - 1 ? 0 : column - static_cast<double>(left);
    const auto element = [&](int64_t r, int64_t q) {
      r = std::min(r, kHeight - 1);
      q = std::min(q, kWidth - 1);
      return x.get(((image * kChannels + c) * kHeight + r) * kWidth + q);
    };
    return {(1 - down) * (1 - right) * element(top, left),
            (1 - down) * right * element(top, left + 1),
            down * (1 - right) * element(top + 1, left),
            down * right * element(top + 1, left + 1)};
  };
  for (const int64_t ratio : {0, 2, 17}) {
    for (const bool most : {false, true}) {
      const Attributes a = {{"output_height", kRows},
                            {"output_width", kColumns},
                            {"sampling_ratio", ratio},
                            {"mode", text(most ? "max" : "avg")}};
      const Tensor y = run_op("RoiAlign", {x, regions, integers({6}, {1, 0, 1, 0, 1, 0})}, a);
      for (int64_t i = 0; i < y.num_elements(); ++i) {
        const int64_t column = i % kColumns, row = i / kColumns % kRows;
        const int64_t c = i / (kColumns * kRows) % kChannels,
                      roi = i / (kColumns * kRows * kChannels);
        const auto corner = [&](int64_t n) { return regions.get(roi * 4 + n) - 0.5; };
        const double height = (corner(3) - corner(1)) / kRows,
                     width = (corner(2) - corner(0)) / kColumns;
        const int64_t down = ratio > 0 ? ratio : static_cast<int64_t>(std::ceil(height));
        const int64_t right = ratio > 0 ? ratio : static_cast<int64_t>(std::ceil(width));
        if (ratio == 0 && height < 0) {
          ASSERT_EQ(y.get(i), 0) << i;
          continue;
        }
        double sum = 0, greatest = -1e9;
        for (int64_t s = 0; s < down * right; ++s) {
          const double inside_row = (static_cast<double>(s / right) + 0.5) / double(down);
          const double inside_column = (static_cast<double>(s % right) + 0.5) / double(right);
          const V parts = at(1 - roi % 2,
                             c,
                             corner(1) + (static_cast<double>(row) + inside_row) * height,
                             corner(0) + (static_cast<double>(column) + inside_column) * width);
          for (const double part : parts) {
            sum += part;
            greatest = std::max(greatest, part);
          }
        }
        const double expected = most ? greatest : sum / static_cast<double>(down * right);
        ASSERT_NEAR(y.get(i), expected, 2e-6) << ratio << " " << most << " " << i;
      }
    }
  }
}

TEST(RoiAlign, OfARegionThatEndsBeforeItBeginsIsZero) {
  const Tensor x = waves({1, 2, 12, 12});
  const Tensor regions = floats({3, 4}, {10, 10, 2, 2, 2, 10, 10, 2, 10, 2, 2, 10});
  const Attributes a = {{"output_height", int64_t{2}}, {"output_width", int64_t{2}}};
  const Tensor y = run_op("RoiAlign", {x, regions, integers({3}, {0, 0, 0})}, a);
  for (int64_t i = 0; i < y.num_elements(); ++i) EXPECT_EQ(y.get(i), 0) << i;
}

// It has 4 * 10^12 samples, of which few lie inside of the data.
TEST(RoiAlign, OfARegionFarLargerThanTheDataTakesNoTime) {
  const Tensor x = floats({1, 1, 2, 2}, {1, 1, 1, 1});
  const Tensor regions = floats({1, 4}, {-1e6F, -1e6F, 1e6F, 1e6F});
  for (const char* mode : {"avg", "max"}) {
    const Tensor y = run_op("RoiAlign", {x, regions, integers({1}, {0})}, {{"mode", text(mode)}});
    // The places -1, 0, 1 and 2 of both dimensions are inside.
    EXPECT_FLOAT_EQ(y.get(0), mode == std::string("avg") ? 16 / 4e12 : 1);
  }
}

TEST(RoiAlign, OfAnInfiniteRegionReturns) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Tensor x = waves({1, 1, 4, 4}), image = integers({1}, {0});
  for (const V& corners :
       {V{0, 0, kInfinity, 3}, V{-kInfinity, 0, 3, 3}, V{0, -kInfinity, 3, kInfinity}})
    for (const char* mode : {"avg", "max"})
      run_op("RoiAlign", {x, floats({1, 4}, corners), image}, {{"mode", text(mode)}});
}

TEST(RoiAlign, OfNoNumberIsNoNumber) {
  const Tensor x = waves({1, 1, 4, 4});
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const int64_t ratio : {0, 2}) {
    const Attributes a = {{"sampling_ratio", ratio}};
    Attributes scaled = a;
    scaled["spatial_scale"] = kNan;
    const Tensor image = integers({1}, {0}), region = floats({1, 4}, {0, 0, 3, 3});
    EXPECT_TRUE(std::isnan(run_op("RoiAlign", {x, region, image}, scaled).get(0))) << ratio;
    const Tensor from_nan = floats({1, 4}, {kNan, 0, 3, 3});
    EXPECT_TRUE(std::isnan(run_op("RoiAlign", {x, from_nan, image}, a).get(0))) << ratio;
  }
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
