#include <gtest/gtest.h>

#include "space/operator_task.h"
#include "space/sketch_rule.h"
#include "space/space.h"
#include "tensor/dag_builder.h"

namespace pruner {
namespace {

int stages_after_inline(const std::string& op) {
  Task task = operator_task(op);
  kInline.apply(task.dag, task.target);
  int compute = 0;
  for (const Stage& stage : task.dag.stages) compute += !stage.is_placeholder();
  return compute;
}

TEST(Inline, FoldsAnElementwiseEpilogueIntoItsLastStage) {
  EXPECT_EQ(stages_after_inline("matmul 8 8 8 +bias +relu"), 2);
}

TEST(Inline, KeepsThePaddingOfAContraction) {
  EXPECT_EQ(stages_after_inline("conv2d 1 8 6 6 4 3 3 padding=1 +relu"), 3);
}

TEST(Inline, MovesThePaddingOfAWindowIntoIt) {
  EXPECT_EQ(stages_after_inline("depthwise_conv2d 1 8 6 6 3 3 padding=1"), 1);
  EXPECT_EQ(stages_after_inline("depthwise_conv2d 1 8 6 6 3 3 padding=1 +bias +relu"), 2);
  EXPECT_EQ(stages_after_inline("depthwise_conv2d 1 8 6 6 5 5 stride=2 padding=2"), 1);
  EXPECT_EQ(stages_after_inline("max_pool2d 1 8 6 6 3 3 stride=2 padding=1"), 1);
}

TEST(Inline, KeepsThePaddingOfWhatReadsItOften) {
  EXPECT_EQ(stages_after_inline("conv2d 1 8 6 6 4 3 3 padding=1"), 2);
  EXPECT_EQ(stages_after_inline("conv2d 1 8 6 6 8 3 3 padding=1 groups=2"), 2);
  EXPECT_EQ(stages_after_inline("depthwise_conv2d 1 8 12 12 9 9 padding=4"), 2);  // 81 taps
}

TEST(Inline, KeepsACostlyStageThatIsReadTwice) {
  EXPECT_EQ(stages_after_inline("softmax 4 16"), 4);
}

// y = x + x, again and again: written out, each stage is twice the one before.
Task doubling_task(int stages, const Target& target) {
  DagBuilder dag;
  StageId at = dag.placeholder("x", {4, 8});
  for (int s = 0; s < stages; ++s) {
    at = dag.compute("double", {4, 8}, [&](std::span<const Expr> axes) {
      return dag.at(at, {axes.begin(), axes.end()}) + dag.at(at, {axes.begin(), axes.end()});
    });
  }
  return make_task(dag.finish({at}), target, "doubling");
}

TEST(Inline, CutsAChainThatWouldGrowExponentially) {
  for (const Target& target : {test_target(), *parse_target("cuda --arch=sm_80", 1)}) {
    const Space space = make_space(doubling_task(60, target));
    for (const Sketch& sketch : space.sketches) {
      const ComputeDag& dag = sketch.dag;
      EXPECT_GT(dag.size(), 2);
      EXPECT_LT(dag.size(), 12);
      for (const Stage& stage : dag.stages) {
        if (stage.is_placeholder()) continue;
        EXPECT_LE(tree_size(stage.body), 4096);
      }
    }
  }
}

}  // namespace
}  // namespace pruner
