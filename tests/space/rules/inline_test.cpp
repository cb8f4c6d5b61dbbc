#include <gtest/gtest.h>

#include "space/operator_task.h"
#include "space/sketch_rule.h"

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

}  // namespace
}  // namespace pruner
