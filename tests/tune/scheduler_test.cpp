#include "tune/scheduler.h"

#include <gtest/gtest.h>

#include <array>

namespace pruner {
namespace {

ScheduledTask task(double weight, double flops, std::vector<double> history, std::string tag = "") {
  return {.weight = weight,
          .flops = flops,
          .tag = std::move(tag),
          .best_s = history.empty() ? kWorstCost : history.back(),
          .history = history,
          .rounds = static_cast<int>(history.size())};
}

TEST(SchedulerGradient, IsTheForwardTermAloneWhileHistoryIsShort) {
  // 0.8 x ((g - g/2) - g) x weight = -0.4 x weight x g.
  const Scheduler scheduler({task(3, 1e9, {0.012, 0.010})});
  EXPECT_NEAR(scheduler.gradient(0), 3 * 0.8 * -0.005, 1e-12);
}

TEST(SchedulerGradient, AddsTheMeanGainOfTheLastThreeRounds) {
  const Scheduler scheduler({task(1, 1e9, {0.020, 0.016, 0.012, 0.008})});
  const double backward = (0.008 - 0.020) / 3, forward = -0.008 / 4;
  EXPECT_NEAR(scheduler.gradient(0), 0.2 * backward + 0.8 * forward, 1e-12);
}

TEST(SchedulerGradient, ExpectsOfASlowTaskHalfOfItsGroupsSpeed) {
  // The other one runs at 100 GFLOPS; this one at 10 may come to 50: from 100 ms to 20 ms.
  const Scheduler scheduler({task(1, 1e9, std::vector<double>(50, 0.1), "conv_40"),
                             task(1, 1e9, std::vector<double>(50, 0.01), "conv_40")});
  EXPECT_NEAR(scheduler.gradient(0), 0.8 * (0.02 - 0.1), 1e-12);
  EXPECT_NEAR(scheduler.gradient(1), 0.8 * -0.01 / 50, 1e-12);
}

TEST(Scheduler, PicksTheTaskThatPromisesMost) {
  Rng rng(0);
  Scheduler scheduler({task(1, 1e9, {0.001}), task(5, 1e9, {0.010}), task(1, 1e9, {0.020})});
  EXPECT_EQ(scheduler.next(rng), 1);
  EXPECT_EQ(scheduler.next(rng, std::array<size_t, 2>{1, 0}), 2);
  scheduler.mark_dead(1);
  EXPECT_EQ(scheduler.next(rng), 2);
  scheduler.mark_dead(0);
  scheduler.mark_dead(2);
  EXPECT_EQ(scheduler.next(rng), std::nullopt);
}

TEST(Scheduler, NeverPicksADeadTaskWhenAllGradientsAreEqual) {
  Rng rng(0);
  Scheduler scheduler({task(1, 1e9, {0.001}), task(1, 1e9, {0.001}), task(1, 1e9, {0.001})});
  scheduler.mark_dead(1);
  for (int i = 0; i < 50; ++i) EXPECT_NE(scheduler.next(rng), 1);
}

TEST(Scheduler, LeavesTheGroupWhenMoreRoundsDidNotHelp) {
  Scheduler scheduler(
      {task(1, 1e9, std::vector<double>(8, 0.1), "conv_40"), task(1, 1e9, {0.01}, "conv_40")});
  scheduler.finish_round(0, 0.1);
  EXPECT_EQ(scheduler[0].tag, "");
  EXPECT_EQ(scheduler[1].tag, "conv_40");
}

TEST(Scheduler, ObjectiveIsTheWeightedSumOfBestTimes) {
  Scheduler scheduler({task(2, 1e9, {0.010}), task(3, 1e9, {})});
  EXPECT_FALSE(scheduler.all_valid());
  scheduler.finish_round(1, 0.001);
  EXPECT_TRUE(scheduler.all_valid());
  EXPECT_NEAR(scheduler.objective_s(), 0.023, 1e-12);
}

TEST(SimilarityTag, JoinsOperatorsAndTheOrderOfMagnitudeOfTheWork) {
  EXPECT_EQ(similarity_tag({"conv2d_nhwc"}, 1e9), "conv2d_nhwc_43");
  EXPECT_EQ(similarity_tag({}, 1e9), "");
}

TEST(RoundSize, LeavesEveryTaskARound) {
  EXPECT_EQ(round_size(10, 1000, 27), 10);
  EXPECT_EQ(round_size(64, 1000, 27), 37);
  EXPECT_EQ(round_size(10, 20, 27), 1);
  EXPECT_EQ(trials_of_a_round_each(64, 1000, 27), 27 * 37);
}

}  // namespace
}  // namespace pruner
