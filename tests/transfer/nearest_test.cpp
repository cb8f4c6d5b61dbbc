// A schedule for a task that nothing was measured of: the nearest one.
#include "transfer/nearest.h"

#include <gtest/gtest.h>

#include <cmath>

#include "golden.h"
#include "space/operator_task.h"

namespace pruner {
namespace {

struct Tuned {
  Task task;
  Space space;
  Candidate candidate;
  Record record;
};

Tuned tuned(const std::string& op, uint64_t seed) {
  Task task = operator_task(op);
  Space space = make_space(task);
  Rng rng(seed);
  Candidate candidate = sample(space, rng);
  while (!is_legal(space, candidate)) candidate = sample(space, rng);
  MeasureResult result;
  result.costs_s = {1e-3};
  Record record = make_record(task, space, candidate, result);
  return {std::move(task), std::move(space), std::move(candidate), std::move(record)};
}

TEST(ShapeDistance, IsTheMeanLogRatioOfTheExtents) {
  const Task task = operator_task("matmul 512 512 512");
  EXPECT_EQ(shape_distance(task, task.key), 0);
  // Data 512x512, weights 512x1024, output 512x1024.
  const double twice = shape_distance(task, operator_task("matmul 512 1024 512").key);
  EXPECT_NEAR(twice, 2 * std::log(2) / 6, 1e-12);
  EXPECT_TRUE(std::isinf(shape_distance(task, operator_task("softmax 64 64").key)));
  EXPECT_TRUE(std::isinf(shape_distance(task, "no key")));
}

TEST(NearestSchedules, GiveATaskItsOwn) {
  const Tuned own = tuned("conv2d 1 64 28 28 64 3 3 padding=1 +bias +relu", 1);
  const Tuned near = tuned("conv2d 1 64 28 28 96 3 3 padding=1 +bias +relu", 2);
  const NearestSchedules nearest({near.record, own.record});
  const auto found = nearest.find(own.task, own.space);
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(found->same_task);
  EXPECT_EQ(found->candidate, own.candidate);
}

TEST(NearestSchedules, AreAdaptedFromTheNearestOfTheClass) {
  const Tuned near = tuned("matmul 512 512 512", 1), far = tuned("matmul 32 2048 64", 2),
              other = tuned("softmax 512 512", 3);
  const NearestSchedules nearest({other.record, far.record, near.record});
  const Task task = operator_task("matmul 512 640 512");
  const Space space = make_space(task);
  const auto found = nearest.find(task, space);
  ASSERT_TRUE(found.has_value());
  EXPECT_FALSE(found->same_task);
  EXPECT_TRUE(is_legal(space, found->candidate));
  EXPECT_EQ(space[found->candidate.sketch].name, near.space[near.candidate.sketch].name);
}

// The record's machine has no tiles; the default schedule of the other machine uses tiles.
TEST(NearestSchedules, SayNothingOfInstructionsThatTheirMachineLacks) {
  const std::string op = "dense 64 256 256 bits=16 exponent=8";
  Tuned plain = tuned(op, 1);
  Target target = test_target();
  target.dots = {0, 0, 32, 64};
  target.device = "with-tiles";
  const Task task = operator_task(op, target);
  const Space space = make_space(task);
  EXPECT_FALSE(NearestSchedules({plain.record}).find(task, space).has_value());
  plain.record.device = device_fingerprint(target);  // both programs were to be had there
  const auto found = NearestSchedules({plain.record}).find(task, space);
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(found->same_task);
}

/// A candidate whose loops give two threads work, and no more.
Candidate of_two_parts(const Space& space) {
  Rng rng(1);
  while (true) {
    Candidate candidate = sample(space, rng);
    const LoopNest nest = make_loop_nest(space, candidate);
    const NestStage& root = nest.stages.back();
    int64_t parts = 1;
    for (int i = 0; i < root.parallel_loops; ++i) parts *= root.loops[i].extent;
    if (parts == 2 && is_legal(space, candidate)) return candidate;
  }
}

// One tile for each of two threads is no schedule for 64.
TEST(NearestSchedules, SayNothingOfWhatLeavesThreadsWithoutWork) {
  const std::string op = "matmul 512 512 512";
  Task task = operator_task(op);
  const Space space = make_space(task);
  MeasureResult result;
  result.costs_s = {1e-3};
  const Record record = make_record(task, space, of_two_parts(space), result);
  ASSERT_EQ(record.threads, 2);
  const NearestSchedules nearest({record});
  EXPECT_TRUE(nearest.find(task, space).has_value());
  Target many = task.target;
  many.threads = 64;
  const Task wide = operator_task(op, many);
  const auto found = nearest.find(wide, make_space(wide));
  EXPECT_FALSE(found.has_value());
}

TEST(NearestSchedules, SayNothingOfWhatIsFarOrOfAnotherClass) {
  const NearestSchedules nearest({tuned("matmul 512 512 512", 1).record});
  for (const char* op : {"matmul 8 64 4096", "softmax 512 512"}) {
    const Task task = operator_task(op);
    EXPECT_FALSE(nearest.find(task, make_space(task)).has_value()) << op;
  }
}

}  // namespace
}  // namespace pruner
