#include "search/roulette.h"

#include <gtest/gtest.h>

#include <cmath>

namespace pruner {
namespace {

TEST(Roulette, DrawsInProportionToScoresAndNothingBelowZero) {
  const float scores[] = {1, -5, 0, 3};
  const Roulette roulette(scores);
  Rng rng(0);
  int drawn[4] = {};
  for (int i = 0; i < 8000; ++i) ++drawn[roulette.spin(rng)];
  EXPECT_EQ(drawn[1], 0);
  EXPECT_EQ(drawn[2], 0);
  EXPECT_NEAR(drawn[0], 2000, 200);
  EXPECT_NEAR(drawn[3], 6000, 200);
}

TEST(Roulette, GivesTheFirstWhereNoScoreIsPositive) {
  const float scores[] = {-1, 0, std::nanf("")};
  const Roulette roulette(scores);
  Rng rng(0);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(roulette.spin(rng), 0u);
}

}  // namespace
}  // namespace pruner
