#include "measure/output_check.h"

#include <gtest/gtest.h>

#include <limits>

#include "tensor/interpreter.h"
#include "tensor/operators.h"

namespace pruner {
namespace {

ExpectedOutput expect(DType dtype, std::vector<double> values) {
  ExpectedOutput expected{dtype, {1, static_cast<int64_t>(values.size())}, {}, values, 0, 0};
  for (size_t i = 0; i < values.size(); ++i) {
    expected.elements.push_back(static_cast<int64_t>(i));
    expected.largest = std::max(expected.largest, std::abs(values[i]));
  }
  return expected;
}

TEST(OutputCheck, AllowsRoundingAndNothingElse) {
  const ExpectedOutput expected = expect(DType::kFloat32, {100, 0, 1});
  const auto wrong = [&](std::vector<float> got) {
    return find_wrong_element(expected, got.data());
  };
  EXPECT_EQ(wrong({100, 0, 1}), std::nullopt);
  EXPECT_EQ(wrong({100.005f, 0.0015f, 0.9985f}), std::nullopt);
  EXPECT_EQ(wrong({100, 0.003f, 1}), "[0, 1] is 0.003000000026077032, expected 0");
  EXPECT_EQ(wrong({100.02f, 0, 1}), "[0, 0] is 100.0199966430664, expected 100");
  EXPECT_EQ(wrong({100, 0, std::numeric_limits<float>::quiet_NaN()}), "[0, 2] is nan, expected 1");
  EXPECT_EQ(wrong({std::numeric_limits<float>::infinity(), 0, 1}), "[0, 0] is inf, expected 100");
}

TEST(OutputCheck, AllowsZerosForSubnormalNumbers) {
  const std::vector<float> zeros = {0, 0}, small = {0, 0x1p-124F};
  EXPECT_EQ(find_wrong_element(expect(DType::kFloat32, {0x1p-130, 0x1p-127}), zeros.data()),
            std::nullopt);
  EXPECT_NE(find_wrong_element(expect(DType::kFloat32, {0x1p-130, 0x1p-125}), zeros.data()),
            std::nullopt);
  EXPECT_NE(find_wrong_element(expect(DType::kFloat32, {0x1p-130, 0x1p-127}), small.data()),
            std::nullopt);
  const std::vector<double> wide = {0, 0};
  EXPECT_EQ(find_wrong_element(expect(DType::kFloat64, {0x1p-1030, 0}), wide.data()), std::nullopt);
  EXPECT_NE(find_wrong_element(expect(DType::kFloat64, {0x1p-127, 0}), wide.data()), std::nullopt);
}

TEST(OutputCheck, FindsWhatWasNeverWritten) {
  ExpectedOutput expected = expect(DType::kFloat32, {1, 2, 3});
  expected.elements = {0, 1};  // the third is not in the sample
  expected.values = {1, 2};
  std::vector<float> got = {1, 2, 3};
  EXPECT_EQ(find_wrong_element(expected, got.data()), std::nullopt);
  std::fill_n(reinterpret_cast<std::byte*>(&got[2]), 4, kUnwritten);
  EXPECT_EQ(find_wrong_element(expected, got.data()), "[0, 2] was not written");
}

TEST(OutputCheck, AllowsAnotherFormItsOwnRoundingWhereThatIsMore) {
  ExpectedOutput expected = expect(DType::kFloat32, {100, 0});
  expected.products = 500;
  EXPECT_DOUBLE_EQ(tolerance(expected, 0), 2e-3);
  EXPECT_DOUBLE_EQ(tolerance(expected, 0, 1e-6), 2e-3);
  EXPECT_DOUBLE_EQ(tolerance(expected, 0, 1e-5), 5e-3);
  EXPECT_DOUBLE_EQ(tolerance(expected, 100, 1e-5), 1e-2);
  const std::vector<float> got = {100, 0.004f};
  EXPECT_EQ(find_wrong_element(expected, got.data(), 1e-5), std::nullopt);
  EXPECT_NE(find_wrong_element(expected, got.data(), 1e-6), std::nullopt);
}

TEST(OutputCheck, FindsTheLargestSumOfProducts) {
  Rng rng(2);
  const ComputeDag dag = *parse_operator("conv2d 1 8 5 5 16 3 3 padding=1 +bias +relu");
  std::vector<Tensor> inputs = random_inputs(dag, rng);
  for (const size_t i : {0, 1}) {
    for (int64_t e = 0; e < inputs[i].num_elements(); ++e) inputs[i].set(e, e % 2 == 0 ? 2 : -2);
  }
  EXPECT_EQ(expect_outputs(dag, inputs, 10, rng)[0].products, 4 * 9 * 16);
  const ComputeDag relu = *parse_operator("relu 10");
  EXPECT_EQ(expect_outputs(relu, random_inputs(relu, rng), 10, rng)[0].products, 0);
}

TEST(OutputCheck, WantsIntegersExactly) {
  const ExpectedOutput expected = expect(DType::kInt64, {1000000, 3});
  std::vector<int64_t> got = {1000000, 3};
  EXPECT_EQ(find_wrong_element(expected, got.data()), std::nullopt);
  got[0]++;
  EXPECT_EQ(find_wrong_element(expected, got.data()), "[0, 0] is 1000001, expected 1000000");
}

TEST(OutputCheck, LetsFewRoundedBytesDifferByAStep) {
  ExpectedOutput expected = expect(DType::kUInt8, std::vector<double>(200, 7));
  Tensor output(DType::kUInt8, {1, 200});
  for (int64_t i = 0; i < 200; ++i) output.set_int(i, i < 2 ? 8 : 7);
  EXPECT_EQ(find_wrong_element(expected, output.data()), "[0, 0] is 8, expected 7");
  expected.rounded = true;
  EXPECT_EQ(find_wrong_element(expected, output.data()), std::nullopt);
  output.set_int(9, 8);
  EXPECT_EQ(find_wrong_element(expected, output.data()), "[0, 9] is 8, expected 7");
  output.set_int(9, 7);
  output.set_int(1, 9);
  EXPECT_EQ(find_wrong_element(expected, output.data()), "[0, 1] is 9, expected 7");
}

TEST(OutputCheck, ExpectsWhatTheInterpreterSays) {
  const ComputeDag dag = *parse_operator("matmul 40 30 50 +relu");
  Rng rng(1);
  const std::vector<Tensor> inputs = random_inputs(dag, rng);
  const std::vector<ExpectedOutput> expected = expect_outputs(dag, inputs, 500, rng);
  ASSERT_EQ(expected.size(), 1u);
  EXPECT_GE(expected[0].elements.size(), 500u);
  std::vector<Tensor> whole = interpret(dag, inputs);
  EXPECT_EQ(find_wrong_element(expected[0], whole[0].data()), std::nullopt);
  whole[0].set(whole[0].num_elements() - 1, 1e3);
  EXPECT_NE(find_wrong_element(expected[0], whole[0].data()), std::nullopt);
}

}  // namespace
}  // namespace pruner
