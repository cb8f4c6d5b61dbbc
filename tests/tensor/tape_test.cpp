#include "tensor/tape.h"

#include <gtest/gtest.h>

#include "naive.h"

namespace pruner {
namespace {

Tape tape_of(const ComputeDag& dag, int lane_var) {
  std::vector<bool> stored;
  for (const Stage& stage : dag.stages)
    stored.push_back(stage.is_placeholder() || stage.is_reduction());
  StageId id = dag.outputs()[0];
  return compile_tape(dag, id, lane_var, stored);
}

int count(const Tape& tape, TapeOp op) {
  return static_cast<int>(std::ranges::count(tape.nodes, op, &TapeNode::op));
}

TEST(Tape, StepsAlongTheLaneVariable) {
  // Lanes along rc: data and weight are read with even steps, the pad's condition is one value.
  const Tape tape = tape_of(operator_dag("conv2d 1 16 7 7 32 3 3 padding=1"), 6);
  EXPECT_TRUE(tape.lanes_reduce);
  ASSERT_EQ(count(tape, TapeOp::kLoad), 2);
  for (const TapeNode& node : tape.nodes) {
    if (node.op == TapeOp::kLoad) {
      const int64_t step = tape.nodes[static_cast<size_t>(node.a)].step;
      EXPECT_EQ(step, node.tensor == StageId{0} ? 1 : 16);
      EXPECT_FALSE(node.b >= 0 && tape.nodes[static_cast<size_t>(node.b)].lanes);
    }
    EXPECT_FALSE(node.op == TapeOp::kBinary && node.lanes && !node.is_real()) << "index by lane";
  }
}

TEST(Tape, RunsWhatNoLoopChangesOnce) {
  const Tape tape = tape_of(operator_dag("conv2d 1 16 7 7 32 3 3 padding=1"), 6);
  ASSERT_EQ(tape.loops.size(), 2u);  // ry, rx; rc fits the lanes
  ASSERT_EQ(tape.level_start.size(), 4u);
  EXPECT_LT(0, tape.level_start[1]);
  EXPECT_LT(tape.level_start[1], tape.level_start[2]);
  for (size_t i = 0; i < tape.nodes.size(); ++i) {
    for (int operand : {tape.nodes[i].a, tape.nodes[i].b}) EXPECT_LT(operand, static_cast<int>(i));
  }
}

TEST(Tape, ChecksOnlyWhatItCannotProve) {
  EXPECT_EQ(count(tape_of(operator_dag("conv2d 1 16 7 7 32 3 3"), 6), TapeOp::kInRange), 0);
  EXPECT_EQ(count(tape_of(operator_dag("matmul 8 8 8"), 1), TapeOp::kInRange), 0);
  EXPECT_EQ(count(tape_of(operator_dag("conv2d 1 16 7 7 32 3 3 padding=1"), 6), TapeOp::kInRange),
            2);
}

TEST(Tape, MakesEqualNodesOnce) {
  EXPECT_EQ(count(tape_of(operator_dag("relu 100 +gelu"), 0), TapeOp::kLoad), 1);
}

}  // namespace
}  // namespace pruner
