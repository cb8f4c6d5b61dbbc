#include <gtest/gtest.h>

#include <numeric>

#include "naive.h"
#include "tensor/operator_dags.h"

namespace pruner {
namespace {

using Values = std::vector<double>;

// What add(builder, x) gives for x = `values` of `shape`.
template <typename Add>
Tensor result(const std::vector<int64_t>& shape, const Values& values, Add add) {
  DagBuilder b;
  const StageId x = b.placeholder("x", shape);
  const ComputeDag dag = b.finish({add(b, x)});
  return interpret(dag, std::vector{tensor_of(shape, values)})[0];
}

const Values kSix = {1, 5, 3, 4, 2, 6};  // of [2, 3]

Tensor reduced(std::vector<int64_t> axes, bool keep, ReduceKind kind) {
  return result({2, 3}, kSix, [&](auto& b, auto x) { return add_reduce(b, x, axes, keep, kind); });
}

TEST(ReduceDag, ReducesAnyAxes) {
  EXPECT_EQ(values_of(reduced({1}, false, ReduceKind::kSum)), (Values{9, 12}));
  EXPECT_EQ(values_of(reduced({0}, false, ReduceKind::kMax)), (Values{4, 5, 6}));
  EXPECT_EQ(values_of(reduced({0, 1}, false, ReduceKind::kMin)), (Values{1}));
  EXPECT_EQ(values_of(reduced({1}, false, ReduceKind::kProd)), (Values{15, 48}));
  EXPECT_EQ(values_of(reduced({1, 0}, false, ReduceKind::kMean)), (Values{3.5}));
}

TEST(ReduceDag, KeepsDims) {
  EXPECT_EQ(reduced({1}, true, ReduceKind::kSum).shape(), (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(reduced({0, 1}, false, ReduceKind::kSum).shape(), std::vector<int64_t>{});
}

TEST(ArgReduceDag, TakesTheFirstOrTheLastOfEquals) {
  const Values ties = {3, 7, 7, 1, 1, 1};
  const auto arg = [&](bool largest, bool last) {
    return values_of(result({2, 3}, ties, [&](auto& b, auto x) {
      return add_arg_reduce(b, x, 1, false, largest, last);
    }));
  };
  EXPECT_EQ(arg(true, false), (Values{1, 0}));
  EXPECT_EQ(arg(true, true), (Values{2, 2}));
  EXPECT_EQ(arg(false, false), (Values{0, 0}));
  EXPECT_EQ(arg(false, true), (Values{0, 2}));
}

TEST(SoftmaxDag, SumsToOneOverAnyAxis) {
  for (int64_t axis : {0, 1}) {
    const Values y =
        values_of(result({2, 3}, kSix, [&](auto& b, auto x) { return add_softmax(b, x, axis); }));
    const double first = axis == 0 ? y[0] + y[3] : y[0] + y[1] + y[2];
    EXPECT_NEAR(first, 1, 1e-6);
    const double against = axis == 0 ? std::exp(-3.) : std::exp(-4.);
    EXPECT_NEAR(y[0] / (axis == 0 ? y[3] : y[1]), against, 1e-6);
  }
}

TEST(SoftmaxDag, TakesTheLogarithm) {
  const Values y =
      values_of(result({2, 3}, kSix, [](auto& b, auto x) { return add_softmax(b, x, 1, true); }));
  const Values p =
      values_of(result({2, 3}, kSix, [](auto& b, auto x) { return add_softmax(b, x, 1); }));
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(y[i], std::log(p[i]), 1e-5);
}

TEST(SoftmaxDag, StaysFiniteForLargeValues) {
  const Values y =
      values_of(result({1, 2}, {1000, 1001}, [](auto& b, auto x) { return add_softmax(b, x, 1); }));
  EXPECT_NEAR(y[1], 1 / (1 + std::exp(-1.)), 1e-6);
}

TEST(LayernormDag, NormalisesScalesAndShifts) {
  DagBuilder b;
  const StageId x = b.placeholder("x", {2, 3});
  const StageId scale = b.placeholder("g", {3}), shift = b.placeholder("b", {3});
  const ComputeDag dag = b.finish({add_layernorm(b, x, 1, scale, shift, 0)});
  const Values g = {1, 2, 3}, s = {10, 20, 30};
  const std::vector<Tensor> in = {tensor_of({2, 3}, kSix), tensor_of({3}, g), tensor_of({3}, s)};
  const Values y = values_of(interpret(dag, in)[0]);
  const double mean = 3, deviation = std::sqrt(8. / 3);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_NEAR(y[i], (kSix[i] - mean) / deviation * g[i] + s[i], 1e-5);
}

TEST(LayernormDag, GoesWithoutScaleAndShift) {
  const Values y = values_of(result({2, 3}, kSix, [](auto& b, auto x) {
    return add_layernorm(b, x, 0, StageId{}, StageId{}, 0);
  }));
  EXPECT_NEAR(std::accumulate(y.begin(), y.end(), 0.0), 0, 1e-5);
}

TEST(LrnDag, DividesByTheNeighboursSquares) {
  const Values x = {1, 2, 3, 4};
  const Values y = values_of(
      result({1, 4}, x, [](auto& b, auto id) { return add_lrn(b, id, 3, 0.3, 0.75, 2); }));
  for (int i = 0; i < 4; ++i) {
    double squares = 0;
    for (int j = std::max(i - 1, 0); j <= std::min(i + 1, 3); ++j) squares += x[j] * x[j];
    EXPECT_NEAR(y[i], x[i] / std::pow(2 + 0.1 * squares, 0.75), 1e-6);
  }
}

}  // namespace
}  // namespace pruner
