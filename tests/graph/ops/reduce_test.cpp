#include <gmock/gmock.h>

#include "graph/small_graph.h"

namespace pruner {
namespace {

using testing::HasSubstr;

TEST(Reduce, FoldsAxes) {
  const Tensor x = floats({2, 3}, {1, -2, 3, 4, 5, -6});
  const auto rows = [&](const char* op) {
    return values_of(run_op(op, {x, Ints{1}}, {{"keepdims", int64_t{0}}}));
  };
  using V = std::vector<double>;
  EXPECT_EQ(rows("ReduceSum"), (V{2, 3}));
  EXPECT_EQ(rows("ReduceMax"), (V{3, 5}));
  EXPECT_EQ(rows("ReduceMin"), (V{-2, -6}));
  EXPECT_EQ(rows("ReduceProd"), (V{-6, -120}));
  EXPECT_EQ(rows("ReduceL1"), (V{6, 15}));
  EXPECT_EQ(rows("ReduceSumSquare"), (V{14, 77}));
  expect_near(run_op("ReduceMean", {x, Ints{0}}), floats({1, 3}, {2.5, 1.5, -1.5}));
  expect_near(run_op("ReduceL2", {x, Ints{-1}}), floats({2, 1}, {std::sqrt(14), std::sqrt(77)}));
  EXPECT_EQ(values_of(run_op("ReduceSum", {x})), (V{5}));
  EXPECT_EQ(run_op("ReduceSum", {x}).shape(), (Ints{1, 1}));
  EXPECT_EQ(values_of(run_op("ReduceSum", {x}, {{"noop_with_empty_axes", int64_t{1}}})),
            values_of(x));
}

TEST(ArgReduce, GivesTheFirstPlace) {
  const Tensor x = floats({2, 3}, {1, 7, 7, 4, 0, 0});
  EXPECT_EQ(values_of(run_op("ArgMax", {x}, {{"axis", int64_t{1}}})), (std::vector<double>{1, 0}));
  EXPECT_EQ(values_of(run_op("ArgMin", {x}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}})),
            (std::vector<double>{0, 1}));
}

TEST(Softmax, SumsToOneAlongItsAxis) {
  const Tensor x = floats({2, 2}, {0, std::log(3), 0, 0});
  expect_near(run_op("Softmax", {x}), floats({2, 2}, {0.25, 0.75, 0.5, 0.5}));
  expect_near(run_op("Softmax", {x}, {{"axis", int64_t{0}}}),
              floats({2, 2}, {0.5, 0.75, 0.5, 0.25}));
  expect_near(run_op("LogSoftmax", {x}),
              floats({2, 2}, {std::log(0.25), std::log(0.75), std::log(0.5), std::log(0.5)}));
  expect_near(run_op("Softmax", {floats({2}, {1000, 1000})}), floats({2}, {0.5, 0.5}));
}

TEST(LayerNormalization, CentresAndScales) {
  const Tensor x = floats({2, 2}, {1, 3, -4, 4});
  const Tensor scale = floats({2}, {2, 10}), bias = floats({2}, {0.5, 0});
  expect_near(run_op("LayerNormalization", {x, scale, bias}, {{"epsilon", 0.0}}),
              floats({2, 2}, {-1.5, 10, -1.5, 10}));
  expect_near(
      run_op(
          "LayerNormalization", {x, floats({1, 1}, {1})}, {{"axis", int64_t{0}}, {"epsilon", 0.0}}),
      floats({2, 2}, {0, 2 / std::sqrt(9.5), -5 / std::sqrt(9.5), 3 / std::sqrt(9.5)}));
  EXPECT_THAT(refusal("LayerNormalization", {x, waves({3})}), HasSubstr("3"));
}

TEST(ChannelNorm, WorksOnEachChannel) {
  const Tensor x = floats({1, 2, 2}, {1, 3, 10, 30}), scale = floats({2}, {1, 2}),
               bias = floats({2}, {0, 1});
  expect_near(run_op("BatchNormalization",
                     {x, scale, bias, floats({2}, {1, 10}), floats({2}, {4, 100})},
                     {{"epsilon", 0.0}}),
              floats({1, 2, 2}, {0, 1, 1, 5}));
  expect_near(run_op("InstanceNormalization", {x, scale, bias}, {{"epsilon", 0.0}}),
              floats({1, 2, 2}, {-1, 1, -1, 3}));
  EXPECT_THAT(refusal("BatchNormalization", {x, scale, bias, waves({3}), scale}),
              HasSubstr("input 3 of shape 3 does not fit 2 channels"));
}

}  // namespace
}  // namespace pruner
