#include "dataset/program_table.h"

#include <cmath>

#include "dataset/synthetic_table.h"
#include "golden.h"

namespace pruner {
namespace {

ProgramFeatures one_row(float value) {
  ProgramFeatures features;
  features.rows.assign(kRowFeatures, value);
  return features;
}

TEST(ProgramTable, LeavesOutWhatCannotBeLearnedFrom) {
  ProgramTable table;
  const DatasetTask task{"[\"a\"]", "cuda"};
  table.add(task, 1, one_row(1), 2.0);
  table.add(task, 2, one_row(2), 1e10);
  table.add(task, 3, one_row(3), 0);
  table.add(task, 4, one_row(4), NAN);
  table.add(task, 1, one_row(1), 2.0);
  table.add({"[\"b\"]", "cuda"}, 1, one_row(1), 2.0);
  table.add(task, 5, {}, 1.0);
  table.add(task, 6, one_row(INFINITY), 1.0);
  table.add(task, 7, one_row(7), 1.0);
  EXPECT_EQ(table.size(), 3u);
  EXPECT_EQ(table.tasks().size(), 2u);
  EXPECT_EQ(table.left_out().failed, 1);
  EXPECT_EQ(table.left_out().bad_time, 2);
  EXPECT_EQ(table.left_out().twice, 1);
  EXPECT_EQ(table.left_out().no_feature, 2);
  EXPECT_EQ(table.label(0), 0.5f);
  EXPECT_EQ(table.label(1), 1);
  EXPECT_EQ(table.label(2), 1);
}

TEST(ProgramTable, GivesItsFeaturesAwayAndKeepsTheRest) {
  ProgramTable table;
  add_synthetic("a", "cuda", 4, table);
  const std::vector<float> rows = table.samples()[2].features.rows;
  const std::vector<TrainingSample> taken = table.take(std::vector<size_t>{2});
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].features.rows, rows);
  EXPECT_TRUE(table.samples()[2].features.rows.empty());
  EXPECT_EQ(table.size(), 4u);
  EXPECT_EQ(table.columns().workload, (std::vector<std::string>{"a"}));
}

}  // namespace
}  // namespace pruner
