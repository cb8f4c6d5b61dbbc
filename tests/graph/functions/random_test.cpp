#include "graph/small_graph.h"

namespace pruner {
namespace {

struct Moments {
  double mean = 0, deviation = 0;
};
Moments moments(const Tensor& t) {
  Moments m;
  const auto n = static_cast<double>(t.num_elements());
  for (const double v : values_of(t)) m.mean += v / n;
  for (const double v : values_of(t)) m.deviation += (v - m.mean) * (v - m.mean) / n;
  return {m.mean, std::sqrt(m.deviation)};
}

const Attribute kManyElements = Ints{100, 100};

TEST(Random, IsOfTheDistributionsOfOnnx) {
  const Moments normal = moments(
      run_op("RandomNormal", {}, {{"shape", kManyElements}, {"mean", 3.0}, {"scale", 2.0}}));
  EXPECT_NEAR(normal.mean, 3, 0.1);
  EXPECT_NEAR(normal.deviation, 2, 0.1);
  const Tensor uniform =
      run_op("RandomUniform", {}, {{"shape", kManyElements}, {"low", -1.0}, {"high", 3.0}});
  EXPECT_NEAR(moments(uniform).mean, 1, 0.1);
  EXPECT_NEAR(moments(uniform).deviation, 4 / std::sqrt(12), 0.1);
  for (const double v : values_of(uniform)) ASSERT_TRUE(v >= -1 && v <= 3);
}

TEST(Random, IsDecidedByItsSeed) {
  const auto drawn = [](double seed) {
    return values_of(run_op("RandomNormalLike", {waves({3, 4})}, {{"seed", seed}}));
  };
  EXPECT_EQ(drawn(1), drawn(1));
  EXPECT_NE(drawn(1), drawn(2));
}

TEST(Bernoulli, IsOneWithItsProbability) {
  Tensor p(DType::kFloat32, {10000});
  for (int64_t i = 0; i < 10000; ++i) p.set(i, 0.25);
  EXPECT_NEAR(moments(run_op("Bernoulli", {p})).mean, 0.25, 0.02);
  EXPECT_EQ(values_of(run_op("Bernoulli", {floats({2}, {0, 1})})), (std::vector<double>{0, 1}));
}

TEST(Multinomial, DrawsClassesByTheirProbabilities) {
  const Tensor log_p = floats({1, 3}, {std::log(0.25), std::log(0.75), -1e9});
  const Tensor found = run_op("Multinomial", {log_p}, {{"sample_size", int64_t{10000}}});
  EXPECT_EQ(found.dtype(), DType::kInt32);
  EXPECT_EQ(found.shape(), (Ints{1, 10000}));
  EXPECT_NEAR(moments(found).mean, 0.75, 0.02);
}

}  // namespace
}  // namespace pruner
