#include <gtest/gtest.h>

#include <algorithm>

#include "space/operator_task.h"
#include "space/sketch_rule.h"
#include "space/space.h"

namespace pruner {
namespace {

// How the loops of a root walk one axis: the elements of a parallel tile, where the last of several
// starts, and where the last one ends.
struct Reach {
  int64_t tile = 1, clamp = -1, end = 1;
};

Reach reach(const NestStage& stage, int axis) {
  Reach at;
  for (size_t i = 0; i < stage.loops.size(); ++i) {
    const NestLoop& loop = stage.loops[i];
    if (loop.axis != axis) continue;
    const int64_t last = loop.clamp >= 0 ? loop.clamp : (loop.extent - 1) * loop.step;
    at.end += last;
    if (static_cast<int>(i) < stage.parallel_loops) {
      at.clamp = loop.clamp;
    } else {
      at.tile += last;
    }
  }
  return at;
}

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

// If no operand is packed in whole blocks, a root's tiles that fit the vector axis stay inside the
// axis.
TEST_P(NestOfEveryOperator, OverlappingTilesAreFullAlongTheVectorAxisToo) {
  const Task task = operator_task(GetParam());
  const Space space = make_space(task);
  Rng rng(12);
  for (int i = 0; i < 100; ++i) {
    const Candidate candidate = sample(space, rng);
    const LoopNest nest = make_loop_nest(space, candidate);
    for (const StagePlan& plan : space[candidate.sketch].plans) {
      if (!plan.overlaps || nest.of(plan.stage).at.valid()) continue;
      const int axis = vector_axis((*nest.dag)[plan.stage]);
      if (axis < 0) continue;
      const int64_t length = (*nest.dag)[plan.stage].axes[static_cast<size_t>(axis)].extent;
      const Reach at = reach(nest.of(plan.stage), axis);
      if (at.tile <= length) {
        EXPECT_EQ(at.end, length) << print(space, candidate) << "\n" << print(nest);
      }
    }
  }
}

TEST(Nest, OverlapsTilesOfAnOperandThatIsNotPacked) {
  // 37 columns in vectors of 16: a packed operand is padded to 48, another's last tile starts
  // at 21.
  for (const auto& [op, overlaps] : {std::pair{"matmul 8 37 24", true}, {"dense 8 37 24", false}}) {
    const Space space = make_space(operator_task(op));
    Rng rng(13);
    int one_vector = 0;
    for (int i = 0; i < 200; ++i) {
      const Candidate candidate = sample(space, rng);
      const LoopNest nest = make_loop_nest(space, candidate);
      const StagePlan& root = space[candidate.sketch].plans.back();
      ASSERT_TRUE(root.overlapped());
      EXPECT_EQ(root.overlaps, overlaps) << op;
      const Reach at = reach(nest.of(root.stage), 1);
      if (at.tile != 16) continue;
      ++one_vector;
      EXPECT_EQ(at.clamp, overlaps ? 21 : -1) << print(nest);
      EXPECT_EQ(at.end, overlaps ? 37 : 48) << print(nest);
    }
    EXPECT_GT(one_vector, 5) << op;
  }
}

// A tile that is longer than its axis is blocks, and where one loop runs over these, the last block
// starts where it ends with the axis; not where the blocks are summed up in several passes.
TEST(Nest, OverlapsBlocksOfATileLongerThanItsAxis) {
  const Space space = make_space(operator_task("batch_matmul 4 32 197 24"));
  Rng rng(15);
  int overlapping = 0;
  for (int i = 0; i < 400; ++i) {
    const Candidate candidate = sample(space, rng);
    const LoopNest nest = make_loop_nest(space, candidate);
    const NestStage& root = nest.of(space[candidate.sketch].plans.back().stage);
    int levels = 0;
    int64_t block = 1, clamp = -1;
    for (size_t l = static_cast<size_t>(root.parallel_loops); l < root.loops.size(); ++l) {
      const NestLoop& loop = root.loops[l];
      if (loop.axis != 2) continue;
      if (loop.kind != LoopKind::kSerial) {
        block += (loop.extent - 1) * loop.step;
        continue;
      }
      ++levels;
      clamp = loop.clamp;
    }
    const bool in_passes = space[candidate.sketch].name.find("cache-tile") != std::string::npos;
    if (levels != 1 || reach(root, 2).tile < 197 || block > 197) continue;
    EXPECT_EQ(clamp, in_passes || clamp < 0 ? -1 : 197 - block) << print(nest);
    if (!in_passes && 197 % block != 0) {
      EXPECT_EQ(reach(root, 2).end, 197) << print(nest);
      ++overlapping;
    }
  }
  EXPECT_GT(overlapping, 5);
}

// A convolution inside the pooling that reads it computes what the windows of a tile cover, no more
// than the whole, and writes it to a buffer of that size.
TEST(Nest, ComputesAContractionInsideThePoolingThatReadsIt) {
  const Task task = operator_task("conv2d 1 16 14 14 32 3 3 padding=1 +relu +max_pool2d=3,2,1");
  const Space space = make_space(task, std::vector<std::string>{"direct"});
  Rng rng(14);
  int inside = 0, smaller = 0;
  for (int i = 0; i < 300; ++i) {
    const Candidate candidate = sample(space, rng);
    const LoopNest nest = make_loop_nest(space, candidate);
    const auto& plans = space[candidate.sketch].plans;
    const auto conv =
        std::ranges::find_if(plans, [](const auto& p) { return p.overlapped() && p.at.valid(); });
    ASSERT_NE(conv, plans.end());
    const NestStage& computed = nest.of(conv->stage);
    if (!computed.at.valid()) continue;
    ++inside;
    EXPECT_EQ(computed.at, conv->at);
    EXPECT_EQ(computed.scope, Scope::kLocal);
    EXPECT_EQ(computed.parallel_loops, 0);
    const NestStage& pooling = nest.of(conv->at);
    for (const int axis : {1, 2}) {
      int64_t rows = 1;  // rows of the pooling that one visit serves
      for (size_t l = static_cast<size_t>(computed.depth); l < pooling.loops.size(); ++l) {
        const NestLoop& loop = pooling.loops[l];
        if (loop.axis == axis) rows += (loop.extent - 1) * loop.step;
      }
      EXPECT_EQ(computed.extents[static_cast<size_t>(axis)],
                std::min<int64_t>((rows - 1) * 2 + 3, 14))
          << print(nest);
    }
    smaller += computed.extents[1] < 14;
  }
  EXPECT_GT(inside, 100);
  EXPECT_GT(smaller, 50);
}

// A packed weight is read in whole blocks, so a visit may start only where one does.
TEST(IsLegal, KeepsPackedBlocksWholeInsideAnotherCluster) {
  const Task task = operator_task("conv2d 1 72 8 8 24 1 1 +avg_pool2d=2");
  const Space space = make_space(task);
  Rng rng(15);
  int parted = 0;
  for (int i = 0; i < 2000; ++i) {
    const Candidate candidate = draw(space, rng);
    std::string why;
    is_legal(space, candidate, &why);
    parted += why.ends_with("part a packed block");
  }
  EXPECT_GT(parted, 0);
  EXPECT_LT(parted, 1000);
}

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
