#include <gmock/gmock.h>

#include "graph/small_graph.h"

namespace pruner {
namespace {

using testing::HasSubstr;

TEST(Pool, TakesTheLargestOrTheMean) {
  const Tensor x = floats({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const Attributes two = {{"kernel_shape", Ints{2, 2}}};
  EXPECT_EQ(values_of(run_op("MaxPool", {x}, two)), (std::vector<double>{5, 6, 8, 9}));
  EXPECT_EQ(values_of(run_op("AveragePool", {x}, two)), (std::vector<double>{3, 4, 6, 7}));
  EXPECT_EQ(values_of(run_op("GlobalAveragePool", {x})), (std::vector<double>{5}));
  EXPECT_EQ(values_of(run_op("GlobalMaxPool", {x})), (std::vector<double>{9}));
}

TEST(Pool, TakesTheLargestOfIntegers) {
  const Tensor x = integers({1, 1, 2, 2}, {-7, -5, -6, -128}, DType::kInt8);
  const Attributes padded = {{"kernel_shape", Ints{2, 2}}, {"pads", Ints{0, 0, 1, 1}}};
  const Tensor found = run_op("MaxPool", {x}, padded);
  EXPECT_EQ(found.dtype(), DType::kInt8);
  EXPECT_EQ(values_of(found), (std::vector<double>{-5, -5, -6, -128}));
  EXPECT_EQ(values_of(run_op("GlobalMaxPool", {x})), (std::vector<double>{-5}));
  EXPECT_EQ(refusal("GlobalAveragePool", {x}),
            "node \"it\": GlobalAveragePool of int8 is not supported");
}

TEST(Pool, HasThreeDimensions) {
  const Tensor x = floats({1, 1, 2, 2, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const Attributes a = {{"kernel_shape", Ints{2, 2, 2}}};
  EXPECT_EQ(values_of(run_op("MaxPool", {x}, a)), (std::vector<double>{11, 12}));
  EXPECT_EQ(values_of(run_op("AveragePool", {x}, a)), (std::vector<double>{6, 7}));
  EXPECT_EQ(values_of(run_op("GlobalAveragePool", {x})), (std::vector<double>{6.5}));
}

TEST(Pool, PadsWithNothing) {
  const Tensor x = floats({1, 1, 2, 2}, {-4, -3, -2, -1});
  Attributes a = {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}};
  EXPECT_EQ(values_of(run_op("MaxPool", {x}, a)), (std::vector<double>(4, -1)));
  EXPECT_EQ(values_of(run_op("AveragePool", {x}, a)), (std::vector<double>(4, -2.5)));
  a["count_include_pad"] = int64_t{1};
  expect_near(run_op("AveragePool", {x}, a),
              floats({1, 1, 2, 2}, std::vector<double>(4, -10.0 / 9)));
}

TEST(Pool, RoundsUpInCeilMode) {
  const Tensor x = floats({1, 1, 1, 4}, {1, 2, 3, 4});
  const Attributes a = {
      {"kernel_shape", Ints{1, 3}}, {"strides", Ints{1, 2}}, {"ceil_mode", int64_t{1}}};
  EXPECT_EQ(values_of(run_op("MaxPool", {x}, a)), (std::vector<double>{3, 4}));
  EXPECT_EQ(values_of(run_op("AveragePool", {x}, a)), (std::vector<double>{2, 3.5}));
}

TEST(Pool, KeepsChannelsApart) {
  const Tensor x = waves({2, 3, 4, 4});
  const Tensor y = run_op("MaxPool", {x}, {{"kernel_shape", Ints{4, 4}}});
  for (int64_t plane = 0; plane < 6; ++plane) {
    double largest = -1e9;
    for (int64_t i = 0; i < 16; ++i) largest = std::max(largest, x.get(plane * 16 + i));
    EXPECT_FLOAT_EQ(static_cast<float>(y.get(plane)), static_cast<float>(largest));
  }
}

TEST(Pool, NamesWhatDoesNotFit) {
  const Tensor x = waves({1, 1, 4, 4});
  EXPECT_THAT(refusal("MaxPool", {x}, {{"kernel_shape", Ints{2}}}),
              HasSubstr("kernel_shape has 1 elements, the input 2 spatial dimensions"));
  EXPECT_THAT(refusal("MaxPool", {x}, {{"kernel_shape", Ints{2, 2}}, {"pads", Ints{2, 2, 2, 2}}}),
              HasSubstr("in the padding alone"));
  EXPECT_THAT(refusal("MaxPool", {x}, {{"kernel_shape", Ints{0, 2}}}), HasSubstr("kernel"));
}

TEST(Lrn, DividesByItsNeighbours) {
  const Tensor x = floats({1, 4, 1, 1}, {1, 2, 3, 4});
  const Tensor y =
      run_op("LRN", {x}, {{"size", int64_t{3}}, {"alpha", 0.3}, {"beta", 0.5}, {"bias", 2.0}});
  const auto value = [](double v, double squares) { return v / std::sqrt(2 + 0.1 * squares); };
  expect_near(y, floats({1, 4, 1, 1}, {value(1, 5), value(2, 14), value(3, 29), value(4, 25)}));
}

}  // namespace
}  // namespace pruner
