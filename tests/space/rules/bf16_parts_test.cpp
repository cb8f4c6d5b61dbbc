#include <gtest/gtest.h>

#include <cmath>

#include "space/dag_edit.h"
#include "space/operator_task.h"
#include "space/sketch_rule.h"
#include "tensor/interpreter.h"

namespace pruner {
namespace {

Target tile_target() {
  Target target = test_target();
  target.dots = {0, 0, 16, 32};
  return target;
}

bool has_form(const Task& task) {
  ComputeDag dag = task.dag;
  return kBf16Parts.apply(dag, task.target);
}
bool has_form(const std::string& op) { return has_form(operator_task(op, tile_target())); }

class Bf16Parts : public testing::TestWithParam<const char*> {};

TEST_P(Bf16Parts, ComputeWhatTheTaskDoes) {
  const Task task = operator_task(GetParam(), tile_target());
  ComputeDag dag = task.dag;
  ASSERT_TRUE(kBf16Parts.apply(dag, task.target));
  Rng rng(2);
  std::vector<Tensor> inputs = random_inputs(task.dag, rng);
  const std::vector<Tensor> expected = interpret(task.dag, inputs);
  inputs[1] = bfloat16_parts(inputs[1]);
  const std::vector<Tensor> found = interpret(dag, inputs);
  ASSERT_EQ(found[0].shape(), expected[0].shape());
  // Inputs are at most 1; two parts leave out 2^-17 of each factor.
  double terms = 1;
  for (const Stage& stage : task.dag.stages) {
    for (const Iterator& axis : stage.reduce_axes) terms *= static_cast<double>(axis.extent);
  }
  const double most = std::ldexp(2 * terms, -17);
  for (int64_t i = 0; i < expected[0].num_elements(); ++i)
    ASSERT_NEAR(found[0].get(i), expected[0].get(i), most) << "element " << i;
}

INSTANTIATE_TEST_SUITE_P(Forms,
                         Bf16Parts,
                         testing::Values("dense 5 16 32 +bias",
                                         "dense 9 24 200",
                                         "dense 16 40 24",
                                         "conv2d 1 8 8 8 8 3 3",
                                         "conv2d 1 12 9 11 40 3 3 padding=1 +relu",
                                         "conv2d 2 9 5 7 32 3 3 stride=2 padding=1 +bias",
                                         "conv2d 1 32 6 18 96 1 1 +bias +residual +relu"));

// The weight's parts come first, and the parts go around what one instruction takes.
TEST(Bf16PartsForm, PutsThePartsAroundAnInstruction) {
  const Task task = operator_task("dense 32 48 96", tile_target());
  ComputeDag dag = task.dag;
  ASSERT_TRUE(kBf16Parts.apply(dag, task.target));
  const Stage& weight = dag[dag.inputs()[1]];
  EXPECT_EQ(weight.shape(), (std::vector<int64_t>{2, 48, 96}));
  EXPECT_EQ(weight.dtype, DType::kBFloat16);
  EXPECT_EQ(weight.transform, Transform::kBfloat16Parts);
  std::vector<int64_t> extents;
  for (const Iterator& axis : dag[dag.outputs()[0]].reduce_axes) extents.push_back(axis.extent);
  EXPECT_EQ(extents, (std::vector<int64_t>{3, 2, 2, 32}));
}

TEST(Bf16PartsForm, PaddingMovesIntoTheParts) {
  ComputeDag dag = operator_task("conv2d 1 16 7 7 16 3 3 padding=1", tile_target()).dag;
  const int before = dag.size();
  ASSERT_TRUE(kBf16Parts.apply(dag, tile_target()));
  EXPECT_EQ(dag.size(), before);
  dag = operator_task("conv2d 1 16 7 7 16 3 3 padding=1", tile_target()).dag;
  dag.stages.push_back(copy_stage(dag, dag.consumers(dag.inputs()[0])[0], "again"));
  dag.stages.back().output = true;
  ASSERT_TRUE(kBf16Parts.apply(dag, tile_target()));
  EXPECT_EQ(dag.size(), before + 2);
}

TEST(Bf16PartsForm, IsOfFloat32WithAConstantWhereTilesArePresent) {
  EXPECT_TRUE(has_form("dense 32 48 96"));
  EXPECT_FALSE(has_form(operator_task("dense 32 48 96", test_target())));
  Target slow = tile_target();
  slow.dots.bfloat16_tile = 4;
  EXPECT_FALSE(has_form(operator_task("dense 32 48 96", slow)));
  for (const char* op : {"dense 1 48 96",
                         "dense 32 48 97",
                         "dense 32 48 96 bits=16",
                         "dense 32 48 96 bits=16 exponent=8",
                         "batch_matmul 4 16 16 16",
                         "depthwise_conv2d 1 16 7 7 3 3 padding=1",
                         "conv2d_transpose 1 16 8 8 32 4 4 stride=2 padding=1"}) {
    EXPECT_FALSE(has_form(op)) << op;
  }
  Task shared = operator_task("dense 32 48 96", tile_target());
  shared.dag.stages.push_back(copy_stage(shared.dag, shared.dag.inputs()[1], "again"));
  shared.dag.stages.back().output = true;
  EXPECT_FALSE(has_form(shared));
}

}  // namespace
}  // namespace pruner
