#include "support/rng.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace pruner {
namespace {

std::vector<uint64_t> draw(Rng rng, int n) {
  std::vector<uint64_t> drawn;
  for (int i = 0; i < n; ++i) drawn.push_back(rng.next());
  return drawn;
}

TEST(Rng, GivesOneSequenceForASeed) {
  EXPECT_EQ(draw(Rng(1), 100), draw(Rng(1), 100));
  EXPECT_NE(draw(Rng(1), 100), draw(Rng(2), 100));
}

// The numbers of the published xoshiro256** seeded by splitmix64: the same on every machine.
TEST(Rng, IsXoshiroSeededBySplitmix) {
  EXPECT_EQ(draw(Rng(0), 3),
            (std::vector<uint64_t>{
                11091344671253066420ULL, 13793997310169335082ULL, 1900383378846508768ULL}));
}

TEST(Rng, DrawsEveryNumberBelowTheBoundAndNoOther) {
  Rng rng(3);
  std::array<int, 7> count{};
  for (int i = 0; i < 7000; ++i) {
    const int64_t drawn = rng.below(7);
    ASSERT_GE(drawn, 0);
    ASSERT_LT(drawn, 7);
    ++count[drawn];
  }
  for (const int n : count) EXPECT_NEAR(n, 1000, 150);
}

TEST(Rng, DrawsUniformNumbersFromZeroToOne) {
  Rng rng(4);
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const double drawn = rng.uniform();
    ASSERT_GE(drawn, 0);
    ASSERT_LT(drawn, 1);
    sum += drawn;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.02);
}

TEST(Rng, DrawsAnIndexByItsWeight) {
  Rng rng(5);
  const std::array<double, 4> weights = {1, 0, 3, 0};
  std::array<int, 4> count{};
  for (int i = 0; i < 4000; ++i) ++count[rng.weighted(weights)];
  EXPECT_NEAR(count[0], 1000, 150);
  EXPECT_EQ(count[1], 0);
  EXPECT_EQ(count[3], 0);
}

TEST(Rng, DrawsAnyIndexWhenNoWeightIsPositive) {
  Rng rng(6);
  const std::array<double, 3> weights = {0, 0, 0};
  for (int i = 0; i < 100; ++i) EXPECT_LT(rng.weighted(weights), 3u);
}

TEST(Rng, SplitsIntoStreamsThatDiffer) {
  Rng parent(7);
  const Rng first = parent.split();
  const Rng second = parent.split();
  EXPECT_NE(draw(first, 10), draw(second, 10));
}

}  // namespace
}  // namespace pruner
