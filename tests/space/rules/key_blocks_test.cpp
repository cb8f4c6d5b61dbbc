#include <gtest/gtest.h>

#include "space/operator_task.h"
#include "space/rules/form_check.h"

namespace pruner {
namespace {

bool has_form(const std::string& op) {
  ComputeDag dag = operator_task(op).dag;
  return kKeyBlocks.apply(dag, test_target());
}

const Stage& stage_named(const ComputeDag& dag, const std::string& name) {
  for (const Stage& stage : dag.stages)
    if (stage.name == name) return stage;
  ADD_FAILURE() << "no stage " << name;
  return dag.stages[0];
}

TEST(KeyBlocks, AreOfAttentionWhoseKeysDivideIntoSeveral) {
  EXPECT_TRUE(has_form("attention 1 2 33 192 8"));
  EXPECT_TRUE(has_form("attention 1 4 1 1024 8 sharing=2 causal=1"));
  EXPECT_FALSE(has_form("attention 1 2 33 96 8")) << "one block of 64 keys or more";
  EXPECT_FALSE(has_form("attention 1 2 33 251 8")) << "a prime number of keys";
  EXPECT_FALSE(has_form("softmax 33 512"));
  EXPECT_FALSE(has_form("batch_matmul 2 33 512 8"));
}

TEST(KeyBlocks, KeepTheSumsOfTheRowsOfEachBlock) {
  ComputeDag dag = operator_task("attention 1 2 33 1024 8").dag;
  ASSERT_TRUE(kKeyBlocks.apply(dag, test_target()));
  using Shape = std::vector<int64_t>;
  EXPECT_EQ(stage_named(dag, "T_scores").shape(), (Shape{1, 2, 33, 4, 256}));
  EXPECT_EQ(stage_named(dag, "T_softmax_exp").shape(), (Shape{1, 2, 33, 4, 256}));
  EXPECT_EQ(stage_named(dag, "T_weighed.mean").shape(), (Shape{1, 2, 33, 4, 8}));
  EXPECT_EQ(stage_named(dag, "T_weighed").shape(), (Shape{1, 2, 33, 8}));
  for (const char* name : {"T_softmax_maxelem", "T_softmax_expsum"}) {
    EXPECT_EQ(stage_named(dag, name + std::string(".block")).shape(), (Shape{1, 2, 33, 4}));
    EXPECT_EQ(stage_named(dag, name + std::string(".block")).tag, kKeptTag);
    EXPECT_EQ(stage_named(dag, name).shape(), (Shape{1, 2, 33}));
  }
}

class KeyBlocksDag : public testing::TestWithParam<const char*> {};

TEST_P(KeyBlocksDag, ComputesWhatTheTaskDoes) {
  expect_form_computes(kKeyBlocks, operator_task(GetParam()));
}

// The first rows of causal attention see nothing of the last blocks.
INSTANTIATE_TEST_SUITE_P(Forms,
                         KeyBlocksDag,
                         testing::Values("attention 1 2 5 512 8",
                                         "attention 2 4 192 192 8 sharing=2 causal=1",
                                         "attention 1 2 1 1024 8 causal=1"));

TEST(KeyBlocks, StandInTheTilesOfTheirRows) {
  const Task task = operator_task("attention 1 2 24 512 16 causal=1");
  const std::string forms[] = {"key-blocks"};
  const Space space = make_space(task, forms);
  Rng rng(1);
  bool blocks_inside = false, threads_divide_keys = false;
  for (int i = 0; i < 400; ++i) {
    const Candidate candidate = sample(space, rng);
    const LoopNest nest = make_loop_nest(space, candidate);
    const ComputeDag& dag = *nest.dag;
    const auto of = [&](const std::string& name) -> const NestStage& {
      for (const NestStage& stage : nest.stages)
        if (dag[stage.stage].name == name) return stage;
      return nest.stages[0];
    };
    const NestStage &scores = of("T_masked"), &exps = of("T_softmax_exp"),
                    &largest = of("T_softmax_maxelem.block"), &mean = of("T_weighed.mean");
    // The results of one block's rows are kept for the sum over the blocks.
    EXPECT_EQ(largest.scope, Scope::kWorkspace);
    if (!scores.at.valid()) continue;
    EXPECT_EQ(scores.at, mean.stage);
    EXPECT_EQ(largest.at, mean.stage);
    EXPECT_EQ(exps.at, mean.stage);
    blocks_inside = blocks_inside || (mean.at.valid() && scores.extents[3] == 1);
    threads_divide_keys = threads_divide_keys || !mean.at.valid();
  }
  EXPECT_TRUE(blocks_inside);
  EXPECT_TRUE(threads_divide_keys);
}

}  // namespace
}  // namespace pruner
