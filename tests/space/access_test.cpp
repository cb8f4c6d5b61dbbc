#include "space/access.h"

#include <gtest/gtest.h>

#include "space/operator_task.h"

namespace pruner {
namespace {

bool tiled(const std::string& op) {
  const Task task = operator_task(op);
  for (int s = 0; s < task.dag.size(); ++s) {
    if (needs_multi_level_tiling(task.dag, StageId{s})) return true;
  }
  return false;
}

TEST(NeedsMultiLevelTiling, HoldsForContractionsOnly) {
  EXPECT_TRUE(tiled("matmul 8 8 8"));
  EXPECT_TRUE(tiled("conv2d 1 8 4 4 8 3 3"));
  EXPECT_TRUE(tiled("depthwise_conv2d 1 8 4 4 3 3"));
  EXPECT_FALSE(tiled("max_pool2d 1 8 4 4 2 2 stride=2"));
  EXPECT_FALSE(tiled("sum 8 8"));
  EXPECT_FALSE(tiled("relu 8 8"));
}

TEST(AccessesOf, AGuardedReadNeedsTheWholeDimension) {
  const Task task = operator_task("conv2d 1 8 4 4 8 3 3 padding=1");
  const std::vector<Access> reads =
      accesses_of(task.dag, task.dag.consumers(task.dag.inputs()[0])[0]);
  ASSERT_EQ(reads.size(), 1u);
  EXPECT_FALSE(reads[0].whole[0]);
  EXPECT_TRUE(reads[0].whole[1]);
  EXPECT_TRUE(reads[0].indices[1].has_value());
}

}  // namespace
}  // namespace pruner
