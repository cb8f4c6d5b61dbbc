// cache-read, cache-write and rfactor: which stages they add, and to what.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "space/operator_task.h"
#include "space/sketch_rule.h"

namespace pruner {
namespace {

std::vector<std::string> stages_after(const DagRule& rule, const std::string& op) {
  Task task = operator_task(op);
  kInline.apply(task.dag, task.target);
  rule.apply(task.dag, task.target);
  std::vector<std::string> names;
  for (const Stage& stage : task.dag.stages) {
    if (!stage.is_placeholder()) names.push_back(stage.name);
  }
  return names;
}

using Names = std::vector<std::string>;

TEST(CacheWrite, GivesABareContractionAStageThatWritesItOut) {
  EXPECT_EQ(stages_after(kCacheWrite, "matmul 8 8 8"), (Names{"T_matmul_NN.local", "T_matmul_NN"}));
}

TEST(CacheWrite, LeavesAContractionWithAnEpilogueAlone) {
  EXPECT_EQ(stages_after(kCacheWrite, "matmul 8 8 8 +relu").size(), 2u);
}

TEST(CacheRead, TransposesAnOperandThatIsStridedAlongTheVectorAxis) {
  // dense weights are [N, K]: constant ones are packed ahead of time, others are copied.
  Task task = operator_task("dense 8 16 32");
  EXPECT_EQ(stages_after(kCacheRead, "dense 8 16 32").size(), 1u);
  for (Stage& stage : task.dag.stages) {
    stage.layout_free.clear();
    stage.constant = false;
  }
  kCacheRead.apply(task.dag, task.target);
  const auto packed =
      std::find_if(task.dag.stages.begin(), task.dag.stages.end(), [](const Stage& stage) {
        return stage.name.ends_with(".packed");
      });
  ASSERT_NE(packed, task.dag.stages.end());
  EXPECT_EQ(packed->shape(), (std::vector<int64_t>{32, 16}));
}

std::vector<std::string> forms_of(const std::string& op) {
  const Space space = make_space(operator_task(op));
  std::set<std::string> forms;
  for (const SketchId id : space.drawn) forms.insert(space[id].form);
  return {forms.begin(), forms.end()};
}

// Rows of 4 KiB, read by 64 rows of products.
TEST(PackedPanels, AreThereWhereRowsShareTheSetsOfACache) {
  EXPECT_EQ(forms_of("matmul 64 1024 8"), (Names{"direct", "packed-panels"}));
  EXPECT_EQ(forms_of("batch_matmul 2 64 2048 8"), (Names{"direct", "packed-panels"}));
  EXPECT_EQ(forms_of("matmul 64 1040 8"), Names{"direct"});
  EXPECT_EQ(forms_of("matmul 32 1024 8"), Names{"direct"}) << "few rows to share a copy";
  EXPECT_EQ(forms_of("dense 64 1024 8"), Names{"direct"}) << "weights are packed ahead of time";
}

TEST(PackedPanels, LieInTheOrderOfTheRegisterTiles) {
  const Task task = operator_task("matmul 64 1024 8");
  const Space space = make_space(task, Names{"packed-panels"});
  Rng rng(1);
  const Candidate candidate = sample(space, rng);
  const ComputeDag& dag = space[candidate.sketch].dag;
  const auto is_copy = [](const Stage& s) { return s.tag == kCacheReadTag; };
  const auto copy = std::ranges::find_if(dag.stages, is_copy);
  ASSERT_NE(copy, dag.stages.end());
  EXPECT_EQ(copy->shape(), (std::vector<int64_t>{8, 1024}));
  for (int i = 0; i < 50; ++i) {
    const LoopNest nest = make_loop_nest(space, sample(space, rng));
    const StageId id{static_cast<int32_t>(copy - dag.stages.begin())};
    if (nest.of(id).at.valid()) continue;
    ASSERT_EQ(nest.packed.size(), 1u);
    EXPECT_EQ(nest.packed[0].spec.order, (std::vector{1, 0}));
  }
}

TEST(Rfactor, SplitsARowIntoLanesAndMasksTheRest) {
  Task task = operator_task("sum 4 100");
  kRfactor.apply(task.dag, task.target);
  const Stage& part = task.dag.stages[1];
  EXPECT_EQ(part.tag, kRowPartTag);
  EXPECT_EQ(part.shape(), (std::vector<int64_t>{4, 16}));
  EXPECT_EQ(part.reduce_size(), 7);  // 7 * 16 covers 100 elements
  EXPECT_TRUE(has_select(part.body));
}

TEST(Rfactor, LeavesReductionsOverOtherDimensionsAlone) {
  EXPECT_EQ(stages_after(kRfactor, "max_pool2d 1 16 4 4 2 2 stride=2").size(), 1u);
}

}  // namespace
}  // namespace pruner
