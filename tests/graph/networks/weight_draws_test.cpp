#include "graph/networks/weight_draws.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/parallel_for.h"

namespace pruner {
namespace {

constexpr Uniform kWide = {0.5, 2};

bool equal(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::ranges::equal(a.values<float>(), b.values<float>());
}

TEST(WeightDraws, DrawsWhatTheGeneratorWould) {
  WeightDraws draws;
  Rng with(3), without(3);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(equal(draws.draw(with, {4, 5}, kWide), draw(without, {4, 5}, kWide)));
    EXPECT_EQ(with, without);
  }
}

TEST(WeightDraws, SharesTheMemoryOfAnEqualDraw) {
  WeightDraws draws;
  Rng first(3), second(3), third(3);
  const Tensor a = draws.draw(first, {4, 5}, kWide), b = draws.draw(second, {2, 10}, kWide);
  EXPECT_EQ(a.data(), b.data());
  EXPECT_EQ(b.shape(), (std::vector<int64_t>{2, 10}));
  EXPECT_EQ(first, second);
  const Tensor other = draws.draw(third, {4, 5}, {0.5, 1});
  EXPECT_NE(other.data(), a.data());
}

TEST(WeightDraws, KeepsItsElementsFromWriters) {
  WeightDraws draws;
  Rng first(3), second(3), without(3);
  Tensor mine = draws.draw(first, {4}, kWide);
  mine.set(0, 100);
  EXPECT_TRUE(equal(draws.draw(second, {4}, kWide), draw(without, {4}, kWide)));
}

TEST(WeightDraws, AreEqualInEveryThread) {
  WeightDraws draws;
  std::vector<Tensor> made(16);
  parallel_for(16, 4, [&](int64_t i) {
    Rng rng(3);
    draws.draw(rng, {100}, kWide);
    made[static_cast<size_t>(i)] = draws.draw(rng, {1000}, kWide);
  });
  Rng rng(3);
  draw(rng, {100}, kWide);
  const Tensor expected = draw(rng, {1000}, kWide);
  for (const Tensor& tensor : made) EXPECT_TRUE(equal(tensor, expected));
}

}  // namespace
}  // namespace pruner
