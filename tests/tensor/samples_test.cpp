#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "naive.h"

namespace pruner {
namespace {

TEST(SampleElements, IncludesCornersAndEdges) {
  Rng rng(7);
  const std::vector<int64_t> shape = {3, 40, 50, 64};
  const std::vector<int64_t> elements = sample_elements(shape, 1000, rng);
  EXPECT_EQ(elements.size(), 1000u);
  EXPECT_TRUE(std::ranges::is_sorted(elements));
  const std::set<int64_t> chosen(elements.begin(), elements.end());
  EXPECT_EQ(chosen.size(), elements.size());
  for (int64_t n : {0, 2})
    for (int64_t y : {0, 39})
      for (int64_t x : {0, 49})
        for (int64_t c : {0, 63}) EXPECT_TRUE(chosen.contains(((n * 40 + y) * 50 + x) * 64 + c));
  const auto some_have = [&](int64_t stride, int64_t extent, int64_t index) {
    return std::ranges::any_of(elements, [&](int64_t e) { return e / stride % extent == index; });
  };
  for (int64_t y : {0, 19, 20, 39}) EXPECT_TRUE(some_have(50 * 64, 40, y));
  EXPECT_GT(elements.back(), 0);
}

TEST(SampleElements, TakesAllOfASmallTensor) {
  Rng rng(7);
  EXPECT_EQ(sample_elements(std::vector<int64_t>{2, 3}, 1000, rng).size(), 6u);
  EXPECT_EQ(sample_elements({}, 10, rng), std::vector<int64_t>{0});
}

TEST(SampleElements, IsTheSameForOneSeed) {
  Rng a(9), b(9);
  const std::vector<int64_t> shape = {100, 100};
  EXPECT_EQ(sample_elements(shape, 50, a), sample_elements(shape, 50, b));
}

std::pair<double, double> range_of(const Tensor& t) {
  const std::vector<double> values = values_of(t);
  return {*std::ranges::min_element(values), *std::ranges::max_element(values)};
}

TEST(RandomInputs, AreSmallAndSigned) {
  Rng rng(1);
  const std::vector<Tensor> inputs = random_inputs(operator_dag("matmul 30 40 50"), rng);
  const auto [low, high] = range_of(inputs[0]);
  EXPECT_GE(low, -1);
  EXPECT_LT(low, -0.9);
  EXPECT_LE(high, 1);
  EXPECT_GT(high, 0.9);
}

TEST(RandomInputs, StayFromZeroUnderADivision) {
  DagBuilder b;
  const StageId x = b.placeholder("x", {1000}), y = b.placeholder("y", {1000});
  const StageId twice = b.compute("twice", {1000}, [&](auto i) { return b.at(y, {i[0]}) * 2; });
  const StageId z =
      b.compute("z", {1000}, [&](auto i) { return b.at(x, {i[0]}) / b.at(twice, {i[0]}); });
  Rng rng(1);
  const std::vector<Tensor> inputs = random_inputs(b.finish({z}), rng);
  EXPECT_LT(range_of(inputs[0]).first, 0);
  EXPECT_GE(range_of(inputs[1]).first, 0.5);
  // An exponential under the division is positive by itself.
  EXPECT_LT(range_of(random_inputs(operator_dag("softmax 10 100"), rng)[0]).first, 0);
}

// Returns the range of the input of `function`, which also goes into a square root if `rooted`.
std::pair<double, double> range_under(Intrinsic function, bool rooted) {
  DagBuilder b;
  const StageId x = b.placeholder("x", {1000});
  const StageId y = b.compute("y", {1000}, [&](auto i) {
    const Expr value = call(function, {b.at(x, {i[0]})});
    return rooted ? value + call(Intrinsic::kSqrt, {b.at(x, {i[0]})}) : value;
  });
  Rng rng(1);
  return range_of(random_inputs(b.finish({y}), rng)[0]);
}

TEST(RandomInputs, LieWhereFunctionsAreDefined) {
  for (const Intrinsic function : {Intrinsic::kAcos, Intrinsic::kAsin, Intrinsic::kAtanh}) {
    const auto [low, high] = range_under(function, false);
    EXPECT_LT(low, -0.9);
    EXPECT_GT(high, 0.9);
    EXPECT_LE(high, 1);
    const auto [least, most] = range_under(function, true);
    EXPECT_GE(least, 0.5);
    EXPECT_LE(most, 1);
  }
  for (const bool rooted : {false, true}) {
    const auto [low, high] = range_under(Intrinsic::kAcosh, rooted);
    EXPECT_GE(low, 1);
    EXPECT_GT(high, 1.9);
  }
}

TEST(RandomInputs, KeepIndicesBelowTheirBound) {
  DagBuilder b;
  const StageId ids = b.placeholder("ids", {1000}, DType::kInt64),
                n = b.placeholder("n", {1000}, DType::kInt8);
  b.stage(ids).index_bound = 5;
  const ComputeDag dag = b.finish(
      {b.compute("y", {1000}, [&](auto i) { return b.at(ids, {i[0]}) + b.at(n, {i[0]}); })});
  Rng rng(1);
  const std::vector<Tensor> inputs = random_inputs(dag, rng);
  EXPECT_EQ(range_of(inputs[0]), (std::pair<double, double>{0, 4}));
  EXPECT_EQ(range_of(inputs[1]), (std::pair<double, double>{0, 15}));
}

}  // namespace
}  // namespace pruner
