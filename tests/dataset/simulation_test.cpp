#include "dataset/simulation.h"

#include <algorithm>

#include "golden.h"
#include "support/rng.h"

namespace pruner {
namespace {

/// Tasks whose programs' times follow from a feature; the draft knows the order of some of them.
ProgramPool pool_of(int tasks, int programs, double draft_noise) {
  Rng rng(7);
  ProgramPool pool;
  for (int t = 0; t < tasks; ++t) {
    PooledTask task{.task = {"task" + std::to_string(t), "cuda", ""}, .name = "t"};
    for (int p = 0; p < programs; ++p) {
      const double x = rng.uniform();
      ProgramFeatures features;
      features.rows.assign(kRowFeatures, 0.5f);
      features.rows[3] = static_cast<float>(x);
      const double cost_s = p % 10 == 9 ? kFailedCost : (1 + t) * 1e-3 * (1 + 9 * x);
      task.features.push_back(features);
      task.draft_scores.push_back(2 - x + draft_noise * rng.uniform());
      task.trials.push_back({cost_s, 1.0});
    }
    pool.tasks.push_back(std::move(task));
  }
  return pool;
}

TuningCurve run(const ProgramPool& pool, const char* mode, uint64_t seed, int64_t trials = 1000) {
  const SimulationOptions options{
      .mode = *find_mode(mode), .name = mode, .models = {}, .trials = trials, .seed = seed};
  const Result<TuningCurve> curve = simulate(pool, options);
  EXPECT_TRUE(curve.ok()) << curve.error().message();
  return curve.ok() ? *curve : TuningCurve();
}

int64_t trials_to_best(const ProgramPool& pool, const TuningCurve& curve) {
  EXPECT_NEAR(*curve.final_s(), best_known_s(pool), 1e-12);
  return curve.points.back().trials;
}

TEST(Simulate, FindsTheBestWhenAllIsLookedUp) {
  const ProgramPool pool = pool_of(3, 100, 0);
  const TuningCurve curve = run(pool, "random", 1);
  EXPECT_EQ(curve.trials, 300) << "no program is looked up twice";
  EXPECT_NEAR(*curve.final_s(), best_known_s(pool), 1e-12);
  EXPECT_TRUE(std::ranges::is_sorted(curve.points, std::greater(), &CurvePoint::latency_s));
  EXPECT_TRUE(std::ranges::is_sorted(curve.points, {}, &CurvePoint::trials));
  EXPECT_DOUBLE_EQ(curve.points.back().seconds, static_cast<double>(curve.points.back().trials));
}

TEST(Simulate, GivesOneSequenceForASeed) {
  const ProgramPool pool = pool_of(2, 200, 1);
  for (const char* mode : {"random", "draft-only"}) {
    EXPECT_EQ(run(pool, mode, 3).points, run(pool, mode, 3).points) << mode;
    EXPECT_NE(run(pool, mode, 3).points, run(pool, mode, 4).points) << mode;
  }
}

TEST(Simulate, FollowsADraftThatIsRight) {
  const ProgramPool pool = pool_of(2, 400, 0);
  EXPECT_LE(trials_to_best(pool, run(pool, "draft-only", 1)), 40);
  EXPECT_GT(trials_to_best(pool, run(pool, "random", 1)), 100);
}

TEST(Simulate, KeepsToItsTrials) {
  const ProgramPool pool = pool_of(2, 400, 5);
  const TuningCurve curve = run(pool, "random", 1, 15);
  EXPECT_EQ(curve.trials, 15);
  EXPECT_LE(curve.points.back().trials, 15);
}

TEST(Simulate, CountsEqualTasksEqually) {
  ProgramPool pool = pool_of(2, 300, 0);
  for (PooledTrial& trial : pool.tasks[1].trials) trial.cost_s *= 1e-4;
  EXPECT_LE(trials_to_best(pool, run(pool, "draft-only", 1)), 60)
      << "a task of little time has its rounds too";
}

TEST(Simulate, LearnsWhereThereIsALibrary) {
  const ProgramPool pool = pool_of(2, 400, 50);
  const SimulationOptions options{.mode = *find_mode("xgb"), .name = "xgb", .models = {}};
  const Result<TuningCurve> learned = simulate(pool, options);
  if (!learned.ok()) GTEST_SKIP() << learned.error().message();
  EXPECT_LT(trials_to_best(pool, *learned), trials_to_best(pool, run(pool, "random", 0)) / 2);
  EXPECT_EQ(learned->points, simulate(pool, options)->points);
}

TEST(Simulate, AsksForWeights) {
  const ProgramPool pool = pool_of(1, 20, 0);
  EXPECT_ERROR(simulate(pool, {.mode = *find_mode("pam-no-update"), .name = "", .models = {}}),
               "needs weights to start from: --load-model");
}

}  // namespace
}  // namespace pruner
