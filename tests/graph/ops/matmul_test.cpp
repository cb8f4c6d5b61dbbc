#include <gmock/gmock.h>

#include "graph/small_graph.h"

namespace pruner {
namespace {

using testing::HasSubstr;

double product(const Tensor& a, const Tensor& b, int64_t i, int64_t j, int64_t k, int64_t n) {
  double sum = 0;
  for (int64_t l = 0; l < k; ++l) sum += a.get(i * k + l) * b.get(l * n + j);
  return sum;
}

TEST(MatMul, MultipliesStacksOfMatrices) {
  const Tensor a = waves({2, 3, 4, 5}), b = waves({3, 5, 6}, 1);
  const Tensor c = run_op("MatMul", {a, b});
  ASSERT_EQ(c.shape(), (Ints{2, 3, 4, 6}));
  for (int64_t s = 0; s < 6; ++s)
    for (int64_t i = 0; i < 4; ++i)
      for (int64_t j = 0; j < 6; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < 5; ++l)
          sum += a.get(s * 20 + i * 5 + l) * b.get(s % 3 * 30 + l * 6 + j);
        EXPECT_NEAR(c.get(s * 24 + i * 6 + j), sum, 1e-5);
      }
}

TEST(MatMul, TakesVectors) {
  const Tensor m = floats({2, 3}, {1, 2, 3, 4, 5, 6}), v = floats({3}, {1, 10, 100}),
               u = floats({2}, {1, 10});
  EXPECT_EQ(values_of(run_op("MatMul", {m, v})), (std::vector<double>{321, 654}));
  EXPECT_EQ(values_of(run_op("MatMul", {u, m})), (std::vector<double>{41, 52, 63}));
  const Tensor dot = run_op("MatMul", {v, v});
  EXPECT_EQ(dot.shape(), Ints{});
  EXPECT_EQ(dot.get(0), 10101);
  EXPECT_EQ(run_op("MatMul", {waves({3}), waves({2, 3, 4})}).shape(), (Ints{2, 4}));
}

TEST(Gemm, TransposesScalesAndAdds) {
  const Tensor a = waves({4, 5}), b = waves({5, 3}, 1), c = waves({3}, 2);
  Tensor at(DType::kFloat32, {5, 4}), bt(DType::kFloat32, {3, 5}),
      expected(DType::kFloat32, {4, 3});
  for (int64_t i = 0; i < 20; ++i) at.set(i % 5 * 4 + i / 5, a.get(i));
  for (int64_t i = 0; i < 15; ++i) bt.set(i % 3 * 5 + i / 3, b.get(i));
  for (int64_t i = 0; i < 12; ++i) {
    expected.set(i, 0.5 * product(a, b, i / 3, i % 3, 5, 3) + 2 * c.get(i % 3));
  }
  const auto gemm = [&](const Tensor& x, const Tensor& y, int64_t ta, int64_t tb, Operand bias) {
    return run_op("Gemm",
                  {x, Operand::weight(y), std::move(bias)},
                  {{"transA", ta}, {"transB", tb}, {"alpha", 0.5}, {"beta", 2.0}});
  };
  expect_near(gemm(a, b, 0, 0, c), expected);
  expect_near(gemm(a, bt, 0, 1, Operand::weight(c)), expected);
  expect_near(gemm(at, b, 1, 0, c), expected);
  expect_near(gemm(at, bt, 1, 1, c), expected);
}

TEST(MatMul, NamesWhatDoesNotFit) {
  EXPECT_THAT(refusal("MatMul", {waves({2, 3}), waves({4, 5})}),
              HasSubstr("inner extents 3 and 4 differ: operands are 2x3 and 4x5"));
  EXPECT_THAT(refusal("Gemm", {waves({2, 3}), waves({3, 5}), waves({4})}), HasSubstr("4"));
  EXPECT_THAT(refusal("Gemm", {waves({2, 3, 1}), waves({3, 5})}), HasSubstr("have to be matrices"));
}

}  // namespace
}  // namespace pruner
