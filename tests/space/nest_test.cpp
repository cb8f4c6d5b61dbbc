#include <gtest/gtest.h>

#include "space/operator_task.h"
#include "space/space.h"

namespace pruner {
namespace {

class NestOfEveryOperator : public testing::TestWithParam<const char*> {};

// The loops of a root cover every axis: once, or with an overlap that the clamp accounts for.
TEST_P(NestOfEveryOperator, LoopsOfARootCoverItsAxes) {
  const Task task = operator_task(GetParam());
  const Space space = make_space(task);
  Rng rng(9);
  for (int i = 0; i < 100; ++i) {
    const Candidate candidate = sample(space, rng);
    const LoopNest nest = make_loop_nest(space, candidate);
    for (const NestStage& stage : nest.stages) {
      const Stage& s = (*nest.dag)[stage.stage];
      if (stage.at.valid()) continue;
      for (int a = 0; a < static_cast<int>(s.axes.size()); ++a) {
        int64_t reach = 1;
        for (const NestLoop& loop : stage.loops) {
          if (loop.axis != a) continue;
          reach += loop.clamp >= 0 ? loop.clamp : (loop.extent - 1) * loop.step;
        }
        EXPECT_GE(reach, s.axes[a].extent) << print(space, candidate) << "\n" << print(nest);
        // Beyond the end lie only the idle lanes of the last register tile.
        EXPECT_LT(reach, s.axes[a].extent + 16 * 8) << print(space, candidate) << "\n"
                                                    << print(nest);
      }
    }
  }
}

TEST_P(NestOfEveryOperator, NestsPrintTheSameWhenMadeAgain) {
  const Task task = operator_task(GetParam());
  const Space space = make_space(task), again = make_space(task);
  Rng rng(10);
  for (int i = 0; i < 20; ++i) {
    const Candidate candidate = sample(space, rng);
    EXPECT_EQ(print(make_loop_nest(space, candidate)), print(make_loop_nest(again, candidate)));
  }
}

INSTANTIATE_TEST_SUITE_P(Nest, NestOfEveryOperator, testing::ValuesIn(kSmallOperators));

TEST(MakeSpace, SketchHashesNameTheStructureAndNotTheRun) {
  const Space a = make_space(operator_task("matmul 64 64 64")),
              b = make_space(operator_task("matmul 64 64 64"));
  const Space other = make_space(operator_task("matmul 64 64 128"));
  ASSERT_EQ(a.sketches.size(), 2u);
  EXPECT_EQ(a.sketches[0].name, "register-tile");
  EXPECT_EQ(a.sketches[1].name, "cache-tile");
  EXPECT_EQ(a.sketches[0].hash, b.sketches[0].hash);
  EXPECT_NE(a.sketches[0].hash, a.sketches[1].hash);
  EXPECT_NE(a.sketches[0].hash, other.sketches[0].hash);
}

}  // namespace
}  // namespace pruner
