#include "measure/timing.h"

#include <gtest/gtest.h>

#include <cmath>

#include "measure/measure.h"

namespace pruner {
namespace {

// Plays back times of single calls, in seconds, negative ones as disturbed; the last for ever.
struct Replay {
  std::vector<double> times_s;
  size_t next = 0;
  int64_t calls = 0;
  Repeat operator()(int64_t n) {
    calls += n;
    const double time_s = times_s[std::min(next++, times_s.size() - 1)];
    return {std::abs(time_s), time_s < 0};
  }
};

TEST(Timing, TypicalIsTheLowerQuartile) {
  EXPECT_EQ(typical({3}), 3);
  EXPECT_EQ(typical({9, 1, 2}), 1);
  EXPECT_EQ(typical({9, 1, 2, 4, 8, 3, 7, 5}), 3);
  MeasureResult result;
  result.costs_s = {9, 1, 2, 4};
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
  Replay replay{{4e-6}};
  TimingRules rules;
  rules.min_repeat_s = 50e-6;
  time_repeats(std::ref(replay), rules);
  EXPECT_EQ(replay.calls, 2 + 5 * 13);
}

TEST(Timing, GoesOnWhileRepeatsDiffer) {
  Replay replay{{1, 1, 1, 1.5, 1.5, 1.5, 1.5, 1.4, 1}};
  const Timing timing = time_repeats(std::ref(replay), {});
  EXPECT_EQ(timing.costs_s.size(), 7u);
  EXPECT_EQ(typical(timing.costs_s), 1);
}

TEST(Timing, LeavesDisturbedRepeatsOut) {
  Replay replay{{1, 1, -2, 1, -9, 1, 1, 1, -2, 1}};
  const Timing timing = time_repeats(std::ref(replay), {});
  EXPECT_EQ(timing.costs_s, std::vector<double>(5, 1));
  EXPECT_FALSE(timing.disturbed);
}

TEST(Timing, SaysThatThereWasNoQuietMoment) {
  Replay replay{{-1.5, -1.2, -2, -5, 1.2, -1.3, -3}};
  const Timing timing = time_repeats(std::ref(replay), {});
  EXPECT_TRUE(timing.disturbed);
  EXPECT_EQ(timing.costs_s.size(), 15u);  // a quarter of 60
  EXPECT_EQ(timing.costs_s[0], 1.2);
  EXPECT_EQ(timing.costs_s[2], 1.3);
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
  Replay replay{{3, 1, 1, 2, 3, 4, 5}};
  TimingRules rules;
  rules.budget_s = 0;
  const Timing timing = time_repeats(std::ref(replay), rules);
  EXPECT_EQ(timing.costs_s, std::vector<double>{3});
  EXPECT_FALSE(timing.cut_off);
}

}  // namespace
}  // namespace pruner
