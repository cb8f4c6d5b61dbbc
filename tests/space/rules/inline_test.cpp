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

TEST(Inline, KeepsACostlyStageThatIsReadTwice) {
  EXPECT_EQ(stages_after_inline("softmax 4 16"), 4);
}

}  // namespace
}  // namespace pruner
