#include "tensor/dag_builder.h"

#include <gtest/gtest.h>

namespace pruner {
namespace {

Expr zero(std::span<const Expr>) { return float_imm(0); }

TEST(DagBuilder, MakesNamesUniqueAsTvm) {
  DagBuilder b;
  EXPECT_EQ(b.stage(b.placeholder("placeholder", {1})).name, "placeholder");
  EXPECT_EQ(b.stage(b.placeholder("placeholder", {1})).name, "placeholder_1");
  EXPECT_EQ(b.stage(b.compute("placeholder", {1}, zero)).name, "placeholder_2");
}

TEST(DagBuilder, NamesAxes) {
  DagBuilder b;
  const StageId x = b.placeholder("x", {2, 3});
  const auto body = [&](auto i, auto r) { return b.at(x, {i[0], r[0]}); };
  const StageId one = b.reduce("one", {2}, {3}, Combiner::kSum, body, "");
  EXPECT_EQ(b.stage(one).axes[0].name, "ax0");
  EXPECT_EQ(b.stage(one).reduce_axes[0].name, "k");
  const StageId named = b.reduce("named", {2}, {3}, Combiner::kSum, body, "", {"yy", "ry"});
  EXPECT_EQ(b.stage(named).axes[0].name, "yy");
  EXPECT_EQ(b.stage(named).reduce_axes[0].name, "ry");
}

TEST(DagBuilder, TakesTheTypeOfTheBody) {
  DagBuilder b;
  const StageId x = b.placeholder("x", {4}, DType::kFloat16);
  const StageId y = b.compute("y", {4}, [&](auto i) { return b.at(x, {i[0]}) < float_imm(1); });
  EXPECT_EQ(b.stage(y).dtype, DType::kBool);
}

TEST(DagBuilder, LeavesOutStagesThatNoOutputReads) {
  DagBuilder b;
  const StageId x = b.placeholder("x", {4});
  const auto sum = [&](auto, auto r) { return b.at(x, {r[0]}); };
  b.reduce("unread", {1}, {4}, Combiner::kSum, sum, "");
  const StageId w = b.placeholder("w", {4}, DType::kFloat32, true);
  const StageId twice =
      b.compute("twice", {4}, [&](auto i) { return b.at(w, {i[0]}) + b.at(w, {i[0]}); });
  const StageId y = b.compute("y", {4}, [&](auto i) { return b.at(twice, {i[0]}); });
  b.allow_repacking(twice, w);
  const ComputeDag dag = b.finish({y});
  ASSERT_EQ(dag.size(), 4);
  EXPECT_EQ(dag.stages[0].name, "x");  // an argument, though nothing reads it
  EXPECT_EQ(dag.stages[2].name, "twice");
  EXPECT_EQ(dag.stages[2].layout_free, std::vector<StageId>{StageId{1}});
  EXPECT_EQ(dag.producers(StageId{2}), std::vector<StageId>{StageId{1}});
  EXPECT_EQ(dag.producers(StageId{3}), std::vector<StageId>{StageId{2}});
  EXPECT_TRUE(dag.stages[3].output);
}

TEST(DagBuilder, MarksOutputsAndFreeLayouts) {
  DagBuilder b;
  const StageId w = b.placeholder("w", {4}, DType::kFloat32, true);
  const StageId x = b.placeholder("x", {4});
  const StageId y = b.compute("y", {4}, zero);
  b.allow_repacking(y, w);
  b.allow_repacking(y, x);  // not constant: stays as it is
  const ComputeDag dag = b.finish({y});
  EXPECT_EQ(dag[y].layout_free, std::vector<StageId>{w});
  EXPECT_TRUE(dag[y].output);
}

TEST(DagBuilderDeathTest, ChecksRanksAndExtents) {
  DagBuilder b;
  const StageId x = b.placeholder("x", {4, 4});
  EXPECT_DEATH(b.at(x, {0}), "x has 2 dims, read with 1");
  EXPECT_DEATH(b.placeholder("y", {0}), "extent 0");
}

}  // namespace
}  // namespace pruner
