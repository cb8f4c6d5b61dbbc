#include "graph/small_graph.h"

namespace pruner {
namespace {

using V = std::vector<double>;

TEST(FusedMatMul, TransposesAndScales) {
  const Tensor a = floats({2, 2}, {1, 2, 3, 4}), b = floats({2, 1}, {10, 100});
  const auto product = [&](Attributes attributes) {
    return values_of(run_op("com.microsoft::FusedMatMul", {a, b}, std::move(attributes)));
  };
  EXPECT_EQ(product({}), (V{210, 430}));
  EXPECT_EQ(product({{"transA", int64_t{1}}, {"alpha", 0.5}}), (V{155, 210}));
  EXPECT_EQ(values_of(run_op("com.microsoft::FusedMatMul",
                             {floats({1, 2}, {1, 2}), floats({1, 2}, {10, 100})},
                             {{"transB", int64_t{1}}})),
            (V{210}));
}

TEST(FusedMatMul, TakesRowsBeforeTheBatch) {
  const Tensor rows_first = floats({2, 3, 1}, {1, 2, 3, 4, 5, 6}),
               b = floats({3, 1, 1}, {1, 10, 100});
  const Tensor found =
      run_op("com.microsoft::FusedMatMul", {rows_first, b}, {{"transBatchA", int64_t{1}}});
  EXPECT_EQ(found.shape(), (Ints{3, 2, 1}));
  EXPECT_EQ(values_of(found), (V{1, 4, 20, 50, 300, 600}));
}

TEST(FusedGemm, EndsWithItsActivation) {
  const Tensor a = floats({1, 1}, {-2}), b = floats({1, 1}, {1}), c = floats({1}, {-1});
  const Attributes leaky = {{"activation", std::string("LeakyRelu")}, {"activation_alpha", 0.5}};
  EXPECT_EQ(values_of(run_op("com.microsoft::FusedGemm", {a, b, c}, leaky)), V{-1.5});
  EXPECT_EQ(refusal("com.microsoft::FusedGemm", {a, b, c}, {{"activation", std::string("Sign")}}),
            "node \"it\": activation Sign is not supported");
}

TEST(FusedConv, AddsBeforeItsActivation) {
  const Tensor x = floats({1, 1, 1, 2}, {1, -4}), w = floats({1, 1, 1, 1}, {2});
  const Tensor bias = floats({1}, {1}), more = floats({1, 1, 1, 2}, {3, 3});
  EXPECT_EQ(
      values_of(run_op(
          "com.microsoft::FusedConv", {x, w, bias, more}, {{"activation", std::string("Relu")}})),
      (V{6, 0}));
  EXPECT_EQ(
      values_of(run_op("com.microsoft::FusedConv",
                       {x, w},
                       {{"activation", std::string("Clip")}, {"activation_params", V{-1, 1}}})),
      (V{1, -1}));
}

TEST(Gelus, AreOfTheSumOfTheirInputs) {
  const Tensor x = floats({1, 2}, {1, -1}), bias = floats({2}, {1, 1});
  const double exact = 1 + std::erf(std::sqrt(2.0));
  expect_near(run_op("com.microsoft::BiasGelu", {x, bias}), floats({1, 2}, {exact, 0}));
  expect_near(run_op("com.microsoft::Gelu", {floats({1}, {2})}), floats({1}, {exact}));
  const double fast = 1 + std::tanh(std::sqrt(2 / M_PI) * (2 + 0.044715 * 8));
  expect_near(run_op("com.microsoft::FastGelu", {x, bias}), floats({1, 2}, {fast, 0}));
  expect_near(run_op("com.microsoft::QuickGelu", {floats({1}, {2})}),
              floats({1}, {2 / (1 + std::exp(-3.404))}));
}

TEST(BiasSoftmax, IsOverTheDimensionsFromItsAxisOn) {
  const Tensor x = floats({1, 2, 2}, {0, 0, 0, 0}), bias = floats({1, 1, 2}, {0, std::log(3)});
  expect_near(run_op("com.microsoft::BiasSoftmax", {x, bias}, {{"axis", int64_t{2}}}),
              floats({1, 2, 2}, {0.25, 0.75, 0.25, 0.75}));
  expect_near(run_op("com.microsoft::BiasSoftmax", {x, bias}, {{"axis", int64_t{1}}}),
              floats({1, 2, 2}, {0.125, 0.375, 0.125, 0.375}));
}

}  // namespace
}  // namespace pruner
