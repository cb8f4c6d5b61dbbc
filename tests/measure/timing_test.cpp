#include "measure/timing.h"

#include <gtest/gtest.h>

#include "measure/measure.h"

namespace pruner {
namespace {

// Plays back times of single calls, in seconds; the last repeats for ever.
struct Replay {
  std::vector<double> times_s;
  size_t next = 0;
  int64_t calls = 0;
  double operator()(int64_t n) {
    calls += n;
    return times_s[std::min(next++, times_s.size() - 1)];
  }
};

TEST(Timing, TypicalIsTheMedian) {
  EXPECT_EQ(typical({3}), 3);
  EXPECT_EQ(typical({9, 1, 2}), 2);
  EXPECT_EQ(typical({9, 1, 2, 4}), 3);
  MeasureResult result;
  result.costs_s = {9, 1, 2};
  EXPECT_EQ(result.cost_s(), 2);
  result.error = MeasureError::kWrongAnswer;
  EXPECT_EQ(result.cost_s(), kFailedCost);
}

TEST(Timing, StopsWhenRepeatsAgree) {
  Replay replay{{0.01}};
  const Timing timing = time_repeats(std::ref(replay), {});
  EXPECT_EQ(timing.costs_s, std::vector<double>(5, 0.01));
  EXPECT_EQ(replay.calls, 7);  // two to see how long one takes, then one a repeat
}

TEST(Timing, MakesARepeatOfManyShortCalls) {
  Replay replay{{1e-5}};
  TimingRules rules;
  rules.min_repeat_s = 0.002;
  time_repeats(std::ref(replay), rules);
  EXPECT_EQ(replay.calls, 2 + 5 * 200);
}

TEST(Timing, GoesOnWhileRepeatsDiffer) {
  Replay replay{{1, 1, 1, 1.5, 1.5, 1.5, 1, 1.4, 1, 1, 1, 1}};
  TimingRules rules;
  rules.max_repeats = 20;
  const Timing timing = time_repeats(std::ref(replay), rules);
  EXPECT_EQ(timing.costs_s.size(), 9u);
  EXPECT_EQ(typical(timing.costs_s), 1);
}

TEST(Timing, GivesTheBestAllRepeats) {
  Replay replay{{1}};
  TimingRules rules;
  rules.near_s = 1.05;
  EXPECT_EQ(time_repeats(std::ref(replay), rules).costs_s.size(), 20u);
}

TEST(Timing, CutsOffByTheBetterOfTwoCalls) {
  Replay slow{{5, 4, 1}};
  TimingRules rules;
  rules.cut_off_s = 2;
  const Timing timing = time_repeats(std::ref(slow), rules);
  EXPECT_TRUE(timing.cut_off);
  EXPECT_EQ(timing.costs_s, std::vector<double>{4});
  Replay interrupted{{5, 1}};
  EXPECT_FALSE(time_repeats(std::ref(interrupted), rules).cut_off);
}

TEST(Timing, KeepsItsBudget) {
  Replay replay{{1, 1, 1, 2, 3, 4, 5}};
  TimingRules rules;
  rules.budget_s = 0;
  const Timing timing = time_repeats(std::ref(replay), rules);
  EXPECT_EQ(timing.costs_s.size(), 1u);
  EXPECT_FALSE(timing.cut_off);
}

}  // namespace
}  // namespace pruner
