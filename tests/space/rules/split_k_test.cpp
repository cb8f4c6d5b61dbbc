#include <gtest/gtest.h>

#include "space/operator_task.h"
#include "space/rules/form_check.h"
#include "space/sketch_rule.h"

namespace pruner {
namespace {

bool has_form(const std::string& op) {
  ComputeDag dag = operator_task(op).dag;
  return kSplitK.apply(dag, test_target());
}

TEST(SplitK, IsForLongReductionsWithFewOutputs) {
  EXPECT_TRUE(has_form("dense 1 24 2048 +bias +relu"));
  EXPECT_TRUE(has_form("matmul 3 20 1026"));
  EXPECT_FALSE(has_form("dense 1 24 1000")) << "a short reduction";
  EXPECT_FALSE(has_form("dense 1 4096 4096")) << "outputs for all threads";
  EXPECT_FALSE(has_form("dense 1 24 2053")) << "a prime reduction";
  EXPECT_FALSE(has_form("sum 5 4096")) << "no contraction: rfactor has its rows";
}

TEST(SplitK, TwoPartsAThreadWhereTheyDivideTheReduction) {
  ComputeDag dag = operator_task("matmul 3 20 1026").dag;
  ASSERT_TRUE(kSplitK.apply(dag, test_target()));  // 2 threads; 1026 = 3 * 342
  for (const Stage& stage : dag.stages) {
    if (!stage.name.ends_with(".part")) continue;
    EXPECT_EQ(stage.shape(), (std::vector<int64_t>{3, 3, 20}));
    EXPECT_EQ(stage.reduce_size(), 342);
  }
}

class SplitKDag : public testing::TestWithParam<const char*> {};

TEST_P(SplitKDag, ComputesWhatTheTaskDoes) {
  expect_form_computes(kSplitK, operator_task(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Forms,
                         SplitKDag,
                         testing::Values("dense 1 24 2048 +bias +relu",
                                         "matmul 3 20 1026",
                                         "batch_matmul 2 3 5 1500",
                                         "conv2d 1 8 2 2 1024 3 3 padding=1 +residual"));

}  // namespace
}  // namespace pruner
