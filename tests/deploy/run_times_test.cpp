#include "deploy/run_times.h"

#include <gtest/gtest.h>

namespace pruner {
namespace {

TEST(Percentile, LiesOnTheLineBetweenTwoValues) {
  EXPECT_EQ(percentile({}, 50), 0);
  EXPECT_EQ(percentile({3}, 99), 3);
  EXPECT_EQ(percentile({4, 1, 2, 3}, 50), 2.5);
  EXPECT_EQ(percentile({4, 1, 2, 3}, 0), 1);
  EXPECT_EQ(percentile({4, 1, 2, 3}, 100), 4);
  EXPECT_DOUBLE_EQ(percentile({10, 20, 30}, 90), 28);
}

TEST(Summarize, GivesMillisecondsOfSeconds) {
  const BenchResult result = summarize(std::vector<double>{3e-3, 1e-3, 2e-3, 6e-3}, 7);
  EXPECT_EQ(result.runs, 4);
  EXPECT_EQ(result.warm_up, 7);
  EXPECT_DOUBLE_EQ(result.min_ms, 1);
  EXPECT_DOUBLE_EQ(result.max_ms, 6);
  EXPECT_DOUBLE_EQ(result.median_ms, 2.5);
  EXPECT_DOUBLE_EQ(result.mean_ms, 3);
  EXPECT_NEAR(result.std_ms, 2.1602, 1e-4);
  EXPECT_DOUBLE_EQ(result.p90_ms, 5.1);
  EXPECT_NEAR(result.runs_per_s(), 333.33, 0.01);
  EXPECT_EQ(summarize({}, 3).runs_per_s(), 0);
}

}  // namespace
}  // namespace pruner
