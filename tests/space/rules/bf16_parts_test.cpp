#include <gtest/gtest.h>

#include <cmath>
#include <set>

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
  return kBf16Parts2.apply(dag, task.target);
}
bool has_form(const std::string& op) { return has_form(operator_task(op, tile_target())); }

class Bf16Parts : public testing::TestWithParam<const char*> {};

// The form's outputs are as near to the task's as what the parts leave out of each factor, inputs
// being at most 1.
void expect_same(const Task& task, const Form& form, Transform transform, double left_out) {
  ComputeDag dag = task.dag;
  ASSERT_TRUE(form.apply(dag, task.target));
  Rng rng(2);
  std::vector<Tensor> inputs = random_inputs(task.dag, rng);
  const std::vector<Tensor> expected = interpret(task.dag, inputs);
  inputs[1] = transformed(inputs[1], transform);
  const std::vector<Tensor> found = interpret(dag, inputs);
  ASSERT_EQ(found[0].shape(), expected[0].shape());
  double terms = 1;
  for (const Stage& stage : task.dag.stages) {
    for (const Iterator& axis : stage.reduce_axes) terms *= static_cast<double>(axis.extent);
  }
  for (int64_t i = 0; i < expected[0].num_elements(); ++i)
    ASSERT_NEAR(found[0].get(i), expected[0].get(i), 2 * terms * left_out) << "element " << i;
}

TEST_P(Bf16Parts, ComputeWhatTheTaskDoes) {
  const Task task = operator_task(GetParam(), tile_target());
  expect_same(task, kBf16Parts2, Transform::kBfloat16Parts2, std::ldexp(1, -17));
  // Beside what the products leave out that are not added up: 2^-27 three times; and rounding.
  expect_same(task, kBf16Parts3, Transform::kBfloat16Parts3, std::ldexp(1, -23));
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
void expect_shapes(const Form& form,
                   Transform transform,
                   const std::vector<int64_t>& weight_shape,
                   const std::vector<int64_t>& terms) {
  const Task task = operator_task("dense 32 48 96", tile_target());
  ComputeDag dag = task.dag;
  ASSERT_TRUE(form.apply(dag, task.target));
  const Stage& weight = dag[dag.inputs()[1]];
  EXPECT_EQ(weight.shape(), weight_shape);
  EXPECT_EQ(weight.dtype, DType::kBFloat16);
  EXPECT_EQ(weight.transform, transform);
  std::vector<int64_t> extents;
  for (const Iterator& axis : dag[dag.outputs()[0]].reduce_axes) extents.push_back(axis.extent);
  EXPECT_EQ(extents, terms);
}

TEST(Bf16PartsForm, PutsThePartsAroundAnInstruction) {
  expect_shapes(kBf16Parts2, Transform::kBfloat16Parts2, {2, 48, 96}, {3, 2, 2, 32});
  expect_shapes(kBf16Parts3, Transform::kBfloat16Parts3, {4, 48, 96}, {3, 3, 2, 32});
}

// Forms that a space draws from.
std::set<std::string> drawn_forms(const std::string& op, const std::vector<std::string>& forms) {
  const Space space = make_space(operator_task(op, tile_target()), forms);
  std::set<std::string> drawn;
  for (const SketchId id : space.drawn) drawn.insert(space[id].form);
  return drawn;
}

TEST(Bf16PartsForm, IsOfThreePartsForMatricesUnlessAsked) {
  using Names = std::set<std::string>;
  const std::string dense = "dense 32 48 96", conv = "conv2d 1 16 8 8 16 1 1";
  EXPECT_EQ(drawn_forms(dense, {}), (Names{"direct", "bf16-3-parts"}));
  EXPECT_EQ(drawn_forms(conv, {}), (Names{"direct", "bf16-2-parts"}));
  EXPECT_EQ(drawn_forms(dense, {"bf16-2-parts"}), Names{"bf16-2-parts"});
  EXPECT_EQ(drawn_forms(conv, {"bf16-3-parts"}), Names{"bf16-3-parts"});
}

TEST(Bf16PartsForm, PaddingMovesIntoTheParts) {
  ComputeDag dag = operator_task("conv2d 1 16 7 7 16 3 3 padding=1", tile_target()).dag;
  const int before = dag.size();
  ASSERT_TRUE(kBf16Parts2.apply(dag, tile_target()));
  EXPECT_EQ(dag.size(), before);
  dag = operator_task("conv2d 1 16 7 7 16 3 3 padding=1", tile_target()).dag;
  dag.stages.push_back(copy_stage(dag, dag.consumers(dag.inputs()[0])[0], "again"));
  dag.stages.back().output = true;
  ASSERT_TRUE(kBf16Parts2.apply(dag, tile_target()));
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
