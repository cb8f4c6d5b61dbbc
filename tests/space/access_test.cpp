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

// Whether the last reduction of an operator without padding reads its inputs at its own places.
std::vector<bool> at_own_places(const std::string& op) {
  const Task task = operator_task(op);
  std::vector<bool> own;
  for (const StageId input : task.dag.inputs())
    own.push_back(reads_at_own_places(task.dag, task.dag.outputs()[0], input));
  return own;
}

TEST(ReadsAtOwnPlaces, HoldsForTheDataOfAWindow) {
  EXPECT_EQ(at_own_places("max_pool2d 1 8 4 4 2 2 stride=2"), (std::vector<bool>{true}));
  EXPECT_EQ(at_own_places("depthwise_conv2d 1 8 4 4 3 3"), (std::vector<bool>{true, false}));
  EXPECT_EQ(at_own_places("conv2d 1 8 4 4 8 3 3"), (std::vector<bool>{false, false}));
  EXPECT_EQ(at_own_places("matmul 8 8 8"), (std::vector<bool>{false, false}));
}

// The branch that is taken is known when the code is made: only one branch is paid for.
TEST(BodyOperations, OfAChainOfChoicesAreTheAverageOfItsBranches) {
  const Expr i = make_var(VarId{0}, "i"), x = load(TensorId{0}, {i}, DType::kFloat32);
  const auto is = [&](int64_t value) { return binary(BinaryOp::kEq, i, Expr(value)); };
  const Expr one = x + x, two = x * x + x;
  EXPECT_EQ(body_operations(one), 1);
  EXPECT_EQ(body_operations(two), 2);
  EXPECT_DOUBLE_EQ(body_operations(select(is(0), x, select(is(1), one, two))), 1);
  EXPECT_DOUBLE_EQ(body_operations(select(i < Expr(3), one, two)), 4);  // both, and the choice
  EXPECT_LT(body_operations(select(i < Expr(3), x, float_imm(0))), 1);  // a guard, which holds
}

}  // namespace
}  // namespace pruner
