#include "ansor/state.h"

#include "ansor/workloads.h"
#include "golden.h"

namespace pruner::ansor {
namespace {

Result<State> state(const std::string& text) {
  const auto dags = registered_workload(*parse_json(R"(["matmul_layer", 8, 16, 32])"));
  return apply_steps((*dags)[0], *steps_from_json(*parse_json("[" + text + "]")));
}

size_t loops(const std::string& text) {
  const Result<State> applied = state(text);
  EXPECT_TRUE(applied.ok()) << applied.error().message();
  return applied.ok() ? applied->stages[2].leaves.size() : 0;
}

TEST(ApplySteps, ChangesTheLoopsOfAStage) {
  EXPECT_EQ(loops(""), 3u);
  EXPECT_EQ(loops(R"(["SP", 2, 0, 8, [2, 2, 1], 1])"), 6u);
  EXPECT_EQ(loops(R"(["SP", 2, 0, 8, [2], 0], ["FU", 2, [0, 1, 2]])"), 2u);
  EXPECT_EQ(loops(R"(["SP", 2, 0, 8, [2, 2], 1], ["FSP", 2, 3, 0, 1])"), 6u);
  EXPECT_EQ(loops(R"(["SP", 2, 0, 8, [2, 2], 1], ["FFSP", 2, 3, [0], 1, 1])"), 6u);
}

TEST(ApplySteps, FollowsTheLengthsOfAnEarlierSplit) {
  const auto followed = state(R"(["SP", 2, 0, 8, [2, 3, 5], 1], ["FSP", 2, 4, 0, 2])");
  ASSERT_TRUE(followed.ok());
  const auto& relations = followed->stages[2].relations;
  ASSERT_EQ(relations.size(), 5u);
  EXPECT_EQ(relations[3].factor, 15);  // the rest of the lengths in one
  EXPECT_EQ(relations[4].factor, 2);
}

TEST(ApplySteps, MovesStageNumbersAndAttachPoints) {
  const auto cached = state(
      R"(["CHW", 2, "local"], ["CA", 2, 3, 1], ["SP", 3, 1, 32, [4], 1], ["CHR", 0, "shared", [2]])");
  ASSERT_TRUE(cached.ok()) << cached.error().message();
  ASSERT_EQ(cached->stages.size(), 5u);
  EXPECT_EQ(cached->stages[3].at_stage, 4);
  EXPECT_EQ(cached->stages[3].at_iter, cached->stages[4].leaves[2]);  // the split's inner part
  EXPECT_EQ(cached->stages[1].scope, StorageScope::kShared);
}

TEST(ApplySteps, NamesTheStepThatCannotBe) {
  EXPECT_ERROR(state(R"(["FU", 9, [0, 1]])"), "step 0, FU: stage 9 of 3");
  EXPECT_ERROR(state(R"(["FU", -1, [0, 1]])"), "stage -1 of 3");
  EXPECT_ERROR(state(R"(["FU", 0, [0, 1]])"), "stage 0 is an input");
  EXPECT_ERROR(state(R"(["FU", 2, [0, 2]])"), "iterators with a gap");
  EXPECT_ERROR(state(R"(["FU", 2, []])"), "no iterator to fuse");
  EXPECT_ERROR(state(R"(["FU", 2, [2, 3]])"), "iterator 3 of 3");
  EXPECT_ERROR(state(R"(["SP", 2, 0, 8, [0], 1])"), "step 0, SP: a factor of 0");
  EXPECT_ERROR(state(R"(["SP", 2, 0, 8, [-4], 1])"), "a factor of -4");
  EXPECT_ERROR(state(R"(["SP", 2, 0, 8, [4000000000], 1])"), "factors too large");
  EXPECT_ERROR(state(R"(["SP", 2, 0, 8, [2000000000, 9], 1])"), "factors too large");
  EXPECT_ERROR(state(R"(["SP", 2, 0, 8, [], 1])"), "no lengths");
  EXPECT_ERROR(state(R"(["SP", 2, 0, 9, [3], 1])"), "an extent of 9 where the DAG has 8");
  EXPECT_ERROR(state(R"(["CI", 2], ["FSP", 2, 0, 0, 1])"), "a reduction can't be inlined");
  EXPECT_ERROR(state(R"(["FSP", 2, 0, 0, 1])"), "step 0 is no earlier split");
  EXPECT_ERROR(state(R"(["SP", 2, 0, 8, [2], 1], ["FSP", 2, 2, 0, 3])"),
               "3 loops from a split of 1");
  EXPECT_ERROR(state(R"(["SP", 2, 0, 8, [2], 1], ["FFSP", 2, 2, [0], 4, 1])"),
               "level 4 of a split of 1");
  EXPECT_ERROR(state(R"(["RE", 2, [0, 1]])"), "2 iterators in the order, the stage has 3");
  EXPECT_ERROR(state(R"(["RE", 2, [0, 1, 1]])"), "iterator 1 twice");
  EXPECT_ERROR(state(R"(["AN", 2, 0, 3], ["AN", 2, 0, 5])"), "has an annotation already");
  EXPECT_ERROR(state(R"(["PR", 2, 0, "auto_unroll_max_step$x"])"), "has no number");
  EXPECT_ERROR(state(R"(["CA", 2, 2, 0])"), "stage 2 does not come later");
  EXPECT_ERROR(state(R"(["CHW", 2, "moon"])"), "unknown scope \"moon\"");
  EXPECT_ERROR(state(R"(["CHR", 0, "shared", [0]])"), "stage 0 is an input");
  EXPECT_ERROR(state(R"(["SP", 2, 0, 8, [2], 1], ["CHW", 2, "local"])"), "split or fused before");
  std::string many = R"(["SP", 2, 0, 0, [1, 1, 1, 1], 1])";
  for (int i = 0; i < 8; ++i) many += ", " + many;
  EXPECT_ERROR(state(many), "a stage of over 256 loops");
  EXPECT_ERROR(state(R"(["SP", 2, 0, 8, [2000000000], 1], ["FFSP", 2, 2, [0, 0, 0], 0, 1])"),
               "factors too large");
  EXPECT_ERROR(state(R"(["RF", 2, 0, 0])"), "iterator 0 is not reduced");
  EXPECT_ERROR(state(R"(["RF", 2, 2, 5])"), "axis 5 of 3");
}

}  // namespace
}  // namespace pruner::ansor
