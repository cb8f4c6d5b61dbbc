#include <gtest/gtest.h>

#include <numeric>

#include "naive.h"
#include "tensor/operator_dags.h"

namespace pruner {
namespace {

using Values = std::vector<double>;

// Returns add(builder, x) for x = `values` of `shape`.
template <typename Add>
Tensor result(const std::vector<int64_t>& shape, const Values& values, Add add) {
  DagBuilder b;
  const StageId x = b.placeholder("x", shape);
  const ComputeDag dag = b.finish({add(b, x)});
  return interpret(dag, std::vector{tensor_of(shape, values)})[0];
}

const Values kSix = {1, 5, 3, 4, 2, 6};  // the shape is [2, 3]

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

TEST(ReduceDag, OfInfinitiesAndNanIsOneOfThem) {
  const double nan = std::nan("");
  const Values rows = {-INFINITY, -INFINITY, INFINITY, INFINITY, 1, nan, nan, 2};
  const auto reduce = [&](ReduceKind kind) {
    return values_of(result({4, 2}, rows, [&](auto& b, auto x) {
      return add_reduce(b, x, std::vector<int64_t>{1}, false, kind);
    }));
  };
  for (const ReduceKind kind : {ReduceKind::kMax, ReduceKind::kMin}) {
    const Values found = reduce(kind);
    EXPECT_EQ(found[0], -INFINITY);
    EXPECT_EQ(found[1], INFINITY);
    EXPECT_TRUE(std::isnan(found[2]) && std::isnan(found[3]));
  }
}

TEST(ArgReduceDag, StaysInARowOfInfinitiesOrNan) {
  const double nan = std::nan("");
  const Values rows = {-INFINITY, -INFINITY, INFINITY, INFINITY, 1, nan, nan, nan};
  const auto arg = [&](bool largest, bool last) {
    return values_of(result({4, 2}, rows, [&](auto& b, auto x) {
      return add_arg_reduce(b, x, 1, false, largest, last);
    }));
  };
  EXPECT_EQ(arg(true, false), (Values{0, 0, 1, 0}));
  EXPECT_EQ(arg(false, false), (Values{0, 0, 1, 0}));
  EXPECT_EQ(arg(true, true), (Values{1, 1, 1, 1}));
}

// Returns add(builder, x) for `n` numbers of a narrow float, `value` + 1 and `value` - 1 in turn.
template <typename Add>
Tensor of_narrow(DType dtype, int64_t n, double value, Add add) {
  DagBuilder b;
  const StageId x = b.placeholder("x", {1, n}, dtype);
  const ComputeDag dag = b.finish({add(b, x)});
  Tensor tensor(dtype, {1, n});
  for (int64_t i = 0; i < n; ++i) tensor.set(i, value + (i % 2 == 0 ? 1 : -1));
  const Tensor found = interpret(dag, std::vector{tensor})[0];
  EXPECT_EQ(found.dtype(), dtype);
  return found;
}

TEST(NarrowSums, AreFloat32) {
  const std::vector<int64_t> axes = {1};
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    const Tensor mean = of_narrow(dtype, 1024, 300, [&](auto& b, auto x) {
      return add_reduce(b, x, axes, false, ReduceKind::kMean);
    });
    EXPECT_EQ(mean.get(0), 300);
    const Tensor unit = of_narrow(
        dtype, 1024, 100, [&](auto& b, auto x) { return add_normalize(b, x, axes, 1e-5); });
    EXPECT_EQ(unit.get(0), 1);
    EXPECT_EQ(unit.get(1), -1);
    const Tensor share =
        of_narrow(dtype, 4096, 8, [&](auto& b, auto x) { return add_softmax(b, x, 1); });
    EXPECT_NEAR(share.get(0) * 2048, 1 / (1 + std::exp(-2.0)), 0.01);
    const Tensor scores =
        of_narrow(dtype, 2, 8192, [&](auto& b, auto x) { return add_softmax(b, x, 1, true); });
    EXPECT_TRUE(std::isfinite(scores.get(0)));
  }
}

TEST(NarrowSums, OfProductsAreFloat32) {
  DagBuilder b;
  const StageId x = b.placeholder("x", {1, 1024}, DType::kFloat16);
  const StageId w = b.placeholder("w", {1024, 1}, DType::kFloat16);
  const StageId out = add_matmul(b, x, w);
  EXPECT_EQ(b.stage(out).dtype, DType::kFloat16);
  const ComputeDag dag = b.finish({out});
  EXPECT_EQ(dag[dag.producers(out)[0]].dtype, DType::kFloat32);
  Tensor row(DType::kFloat16, {1, 1024}), column(DType::kFloat16, {1024, 1});
  for (int64_t i = 0; i < 1024; ++i) row.set(i, 256), column.set(i, i % 2 == 0 ? 256 : -255);
  EXPECT_EQ(interpret(dag, std::vector{row, column})[0].get(0), INFINITY);  // 131072
  for (int64_t i = 0; i < 1024; ++i) row.set(i, 0.5), column.set(i, 1.0 / 64 + i % 2 / 1024.0);
  EXPECT_NEAR(interpret(dag, std::vector{row, column})[0].get(0), 8.25, 0.005);
}

TEST(SoftmaxDag, OfLargeLogitsKeepsItsDigits) {
  const Values found = values_of(
      result({1, 2}, {1e6, 1e6 + 1}, [&](auto& b, auto x) { return add_softmax(b, x, 1, true); }));
  EXPECT_NEAR(found[0], -1.3132617, 1e-6);
  EXPECT_NEAR(found[1], -0.3132617, 1e-6);
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

TEST(RmsNormDag, DividesByTheRootOfTheMeanSquareInTheScalesType) {
  DagBuilder b;
  const StageId x = b.placeholder("x", {2, 3}, DType::kFloat16), g = b.placeholder("g", {3});
  const ComputeDag dag = b.finish({add_rms_norm(b, x, 1, g, 0.5)});
  Tensor data(DType::kFloat16, {2, 3});
  for (int64_t i = 0; i < 6; ++i) data.set(i, kSix[static_cast<size_t>(i)]);
  const Values scale = {1, 2, 3};
  const Tensor found = interpret(dag, std::vector{data, tensor_of({3}, scale)})[0];
  EXPECT_EQ(found.dtype(), DType::kFloat32);
  const Values y = values_of(found);
  for (size_t row = 0; row < 6; row += 3) {
    double squares = 0;
    for (size_t i = row; i < row + 3; ++i) squares += kSix[i] * kSix[i];
    for (size_t i = row; i < row + 3; ++i)
      EXPECT_NEAR(y[i], kSix[i] / std::sqrt(squares / 3 + 0.5) * scale[i - row], 1e-5);
  }
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
