#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "space/dag_edit.h"
#include "space/operator_task.h"
#include "space/sketch_rule.h"
#include "tensor/check_accesses.h"
#include "tensor/dag_builder.h"
#include "tensor/interpreter.h"
#include "tensor/winograd.h"

namespace pruner {
namespace {

using Names = std::vector<std::string>;

std::set<std::string> forms_of(const Task& task) {
  std::set<std::string> forms;
  for (const Sketch& sketch : make_space(task).sketches) forms.insert(sketch.form);
  return forms;
}
std::set<std::string> forms_of(const std::string& op) { return forms_of(operator_task(op)); }

const std::set<std::string> kAll = {"direct", "winograd-2x2", "winograd-4x4"};
const std::set<std::string> kDirectOnly = {"direct"};

TEST(WinogradForms, AreFurtherSketchesOfAConvolution) {
  const Task task = operator_task("conv2d 1 64 8 8 64 3 3 padding=1 +bias +relu");
  const Space space = make_space(task);
  Names names, forms;
  std::set<std::string> hashes;
  for (const Sketch& sketch : space.sketches) {
    names.push_back(sketch.name);
    forms.push_back(sketch.form);
    hashes.insert(sketch.hash);
  }
  EXPECT_EQ(names,
            (Names{"register-tile",
                   "cache-tile",
                   "winograd-2x2+register-tile",
                   "winograd-2x2+cache-tile",
                   "winograd-4x4+register-tile",
                   "winograd-4x4+cache-tile"}));
  EXPECT_EQ(
      forms,
      (Names{"direct", "direct", "winograd-2x2", "winograd-2x2", "winograd-4x4", "winograd-4x4"}));
  EXPECT_EQ(hashes.size(), names.size());
}

TEST(WinogradForms, TakeTheTasksArgumentsButATransformedWeight) {
  const Task task = operator_task("conv2d 1 16 9 11 24 3 3 padding=1 +bias +residual +relu");
  std::vector<StageId> expected = task.dag.inputs();
  expected.push_back(task.dag.outputs()[0]);
  for (const Sketch& sketch : make_space(task).sketches) {
    ASSERT_EQ(sketch.args.size(), expected.size()) << sketch.name;
    const int m = sketch.form == "direct" ? 0 : sketch.form == "winograd-2x2" ? 2 : 4;
    for (size_t a = 0; a < expected.size(); ++a) {
      const Stage &arg = sketch.dag[sketch.args[a]], &of_task = task.dag[expected[a]];
      const bool weight = a == 1;
      EXPECT_EQ(arg.name, of_task.name) << sketch.name;
      const std::string transform = weight && m > 0 ? sketch.form : "none";
      EXPECT_EQ(transform_name(arg.transform), transform) << sketch.name;
      EXPECT_EQ(arg.shape(), weight && m > 0 ? winograd_shape(of_task.shape(), m) : of_task.shape())
          << sketch.name;
    }
  }
}

// Records and rates are of the task, whatever the form.
TEST(WinogradForms, LeaveKeyAndFlopsAlone) {
  const Task task = operator_task("conv2d 1 64 8 8 64 3 3 padding=1");
  const std::string key = task.key;
  make_space(task);
  EXPECT_EQ(workload_key(task.dag), key);
  EXPECT_EQ(key.find("winograd"), std::string::npos);
  EXPECT_EQ(task.flops, 2. * 8 * 8 * 64 * 9 * 64);
}

TEST(WinogradForms, AreOfThreeByThreeConvolutionsOfStrideOneOnly) {
  EXPECT_EQ(forms_of("conv2d 1 16 7 7 16 3 3 padding=1"), kAll);
  EXPECT_EQ(forms_of("conv2d 1 16 7 7 16 3 3"), kAll);
  for (const char* op : {"conv2d 1 16 7 7 16 3 3 stride=2 padding=1",
                         "conv2d 1 16 7 7 16 3 3 stride=1,2 padding=1",
                         "conv2d 1 16 7 7 16 5 5 padding=2",
                         "conv2d 1 16 7 7 16 3 1",
                         "conv2d 1 16 7 7 16 1 1",
                         "conv2d 1 16 7 7 16 3 3 padding=2 dilation=2",
                         "conv2d 1 16 7 7 16 3 3 padding=1 groups=2",
                         "depthwise_conv2d 1 16 7 7 3 3 padding=1",
                         "conv2d_transpose 1 16 7 7 16 3 3 stride=1 padding=1",
                         "max_pool2d 1 16 7 7 3 3 padding=1",
                         "matmul 16 16 16"}) {
    EXPECT_EQ(forms_of(op), kDirectOnly) << op;
  }
}

TEST(WinogradForms, NeedEightChannelsOfBothKinds) {
  EXPECT_EQ(forms_of("conv2d 1 8 7 7 8 3 3"), kAll);
  EXPECT_EQ(forms_of("conv2d 1 7 7 7 8 3 3"), kDirectOnly);
  EXPECT_EQ(forms_of("conv2d 1 8 7 7 7 3 3"), kDirectOnly);
}

TEST(WinogradForms, NeedAConstantWeightThatNothingElseReads) {
  Task task = operator_task("conv2d 1 16 7 7 16 3 3");
  const StageId weight = task.dag.inputs()[1];
  EXPECT_EQ(forms_of(task), kAll);
  Task shared = task;
  shared.dag.stages.push_back(copy_stage(task.dag, weight, "again"));
  shared.dag.stages.back().output = true;
  EXPECT_EQ(forms_of(shared), kDirectOnly);
  task.dag[weight].constant = false;
  EXPECT_EQ(forms_of(task), kDirectOnly);
}

TEST(WinogradForms, PaddingMovesIntoTheTransform) {
  for (const char* op : {"conv2d 1 16 7 7 16 3 3 padding=1", "conv2d 1 16 7 7 16 3 3"}) {
    ComputeDag dag = operator_task(op).dag;
    ASSERT_TRUE(kWinograd4.apply(dag, test_target()));
    Names names;
    for (const Stage& stage : dag.stages) {
      if (!stage.is_placeholder()) names.push_back(stage.name);
    }
    ASSERT_EQ(names.size(), 5u) << op;
    EXPECT_EQ(Names(names.begin(), names.end() - 1),
              (Names{"winograd_rows", "winograd_data", "winograd_product", "winograd_sums"}));
  }
}

// A GPU's tensor cores multiply narrower numbers.
TEST(WinogradForms, AreOfFloat32OnAGpu) {
  const Target gpu = *parse_target("cuda --arch=sm_80", 0);
  EXPECT_EQ(forms_of(operator_task("conv2d 1 16 7 7 16 3 3 padding=1", gpu)), kAll);
  for (const std::string& form : forms_of(operator_task("conv2d 1 16 7 7 16 3 3 bits=16", gpu)))
    EXPECT_FALSE(form.starts_with("winograd")) << form;
}

// Two convolutions of one padded tensor, one of them with a form: the other keeps the padding.
TEST(WinogradForms, LeavePaddingThatIsReadElsewhere) {
  ComputeDag dag = operator_task("conv2d 1 16 7 7 16 3 3 padding=1").dag;
  const StageId padded = dag.consumers(dag.inputs()[0])[0];
  dag.stages.push_back(copy_stage(dag, padded, "again"));
  dag.stages.back().output = true;
  const int before = dag.size();
  ASSERT_TRUE(kWinograd2.apply(dag, test_target()));
  EXPECT_EQ(dag.size(), before + 4);
}

class WinogradDag : public testing::TestWithParam<std::tuple<const char*, int>> {};

TEST_P(WinogradDag, ComputesWhatTheTaskDoes) {
  const auto& [op, m] = GetParam();
  const Task task = operator_task(op);
  ComputeDag dag = task.dag;
  ASSERT_TRUE((m == 2 ? kWinograd2 : kWinograd4).apply(dag, task.target));
  const Result<Unit> inside = check_accesses(dag);
  ASSERT_TRUE(inside.ok()) << inside.error().message();
  Rng rng(2);
  std::vector<Tensor> inputs = random_inputs(task.dag, rng);
  const std::vector<Tensor> expected = interpret(task.dag, inputs);
  inputs[1] = winograd_weight(inputs[1], m);
  const std::vector<Tensor> found = interpret(dag, inputs);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t o = 0; o < expected.size(); ++o) {
    ASSERT_EQ(found[o].shape(), expected[o].shape());
    for (int64_t i = 0; i < expected[o].num_elements(); ++i)
      ASSERT_NEAR(found[o].get(i), expected[o].get(i), 1e-5 * (1 + std::abs(expected[o].get(i))))
          << op << " element " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Forms,
                         WinogradDag,
                         testing::Combine(testing::Values("conv2d 1 8 8 8 8 3 3",
                                                          "conv2d 1 8 9 11 10 3 3 padding=1",
                                                          "conv2d 2 9 5 7 8 3 3 +residual",
                                                          "conv2d 2 8 6 3 8 3 3 padding=0,2,1,0",
                                                          "conv2d 2 8 3 16 8 3 3 padding=0,2,0,0",
                                                          "conv2d 2 8 9 5 8 3 3 padding=1,0,0,0",
                                                          "conv2d 3 8 1 1 8 3 3 padding=1 +bias",
                                                          "conv2d 1 8 1 13 8 3 3 +bias +relu",
                                                          "conv2d 2 8 7 3 8 3 3 padding=2",
                                                          "conv2d 1 8 9 6 10 3 3 padding=1 bits=16"
                                                          " exponent=8 +relu",
                                                          "conv2d 2 8 5 7 8 3 3 bits=16"),
                                          testing::Values(2, 4)));

// The loops of every stage that has an unrolled tile, in any candidate.
TEST(WinogradNest, TilesAreUnrolledAndTheirPartsInRegisters) {
  const Task task = operator_task("conv2d 2 24 9 11 16 3 3 padding=1 +bias +relu");
  const Space space = make_space(task, Names{"winograd-4x4"});
  Rng rng(6);
  for (int i = 0; i < 20; ++i) {
    const Candidate candidate = sample(space, rng);
    const Sketch& sketch = space[candidate.sketch];
    const LoopNest nest = make_loop_nest(space, candidate);
    int transforms = 0, parts = 0;
    for (const StagePlan& plan : sketch.plans) {
      const Stage& stage = sketch.dag[plan.stage];
      const NestStage& loops = nest.of(plan.stage);
      const bool transform = plan.structure == &kTransform && plan.first == 0;
      const bool part = plan.structure == &kTransform && plan.first > 0;
      EXPECT_EQ(!stage.unrolled.empty(), transform || part) << stage.name;
      if (!transform && !part) continue;
      ++(transform ? transforms : parts);
      EXPECT_EQ(loops.scope,
                part           ? Scope::kRegister
                : stage.output ? Scope::kArgument
                               : Scope::kWorkspace)
          << stage.name;
      EXPECT_EQ(loops.at.valid(), part) << stage.name;
      if (part) {
        EXPECT_EQ(loops.depth, nest.of(loops.at).parallel_loops);
      }
      size_t unrolled = 0;
      for (const NestLoop& loop : loops.loops) {
        if (loop.kind != LoopKind::kUnroll) continue;
        ASSERT_LT(unrolled, stage.unrolled.size());
        const auto& [axis, tile] = stage.unrolled[unrolled++];
        const int64_t extent = stage.axes[static_cast<size_t>(axis)].extent;
        EXPECT_EQ(loop.axis, axis) << stage.name;
        EXPECT_EQ(loop.extent, tile) << stage.name;
        EXPECT_EQ(loop.ragged, extent % tile != 0) << stage.name;
      }
      EXPECT_EQ(unrolled, stage.unrolled.size()) << stage.name;
      EXPECT_EQ(loops.loops.back().kind, LoopKind::kVectorize) << stage.name;
    }
    // Rows, then data; sums, then the output.
    EXPECT_EQ(transforms, 2);
    EXPECT_EQ(parts, 2);
  }
}

}  // namespace
}  // namespace pruner
