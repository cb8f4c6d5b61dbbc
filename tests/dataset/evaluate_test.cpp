#include "dataset/evaluate.h"

#include "dataset/synthetic_table.h"
#include "golden.h"
#include "support/hash.h"

namespace pruner {
namespace {

struct TwoTasks : testing::Test {
  TwoTasks() {
    add_synthetic("a", "cuda", 3, table);
    add_synthetic("b", "cuda", 2, table);
  }
  /// Knows the first program of task a.
  TrainedOn seen() const { return {{}, {table.id()[0]}, {hash64("a")}}; }
  ProgramTable table;
};

TEST_F(TwoTasks, AModelIsJudgedByWhatItHasNotSeen) {
  using Programs = std::vector<size_t>;
  EXPECT_EQ(select(table, seen(), Judged::kUnseenPrograms), (Programs{1, 2, 3, 4}));
  EXPECT_EQ(select(table, seen(), Judged::kUnseenTasks), (Programs{3, 4}));
  EXPECT_EQ(select(table, seen(), Judged::kAll).size(), 5u);
  EXPECT_EQ(select(table, std::nullopt, Judged::kUnseenPrograms).size(), 5u);

  const SeenCount count = count_seen(table, seen());
  EXPECT_TRUE(count.known);
  EXPECT_EQ(count.seen, 1);
  EXPECT_EQ(count.of_known_tasks, 2);
  EXPECT_EQ(count.of_unseen_tasks, 2);
  EXPECT_FALSE(count_seen(table, std::nullopt).known);
}

TEST_F(TwoTasks, LabelsKeepTheScaleOfTheWholeTask) {
  std::vector<size_t> slower;  // all but the fastest of task a
  std::vector<float> perfect;
  for (size_t p = 0; p < 3; ++p) {
    if (table.label(p) == 1) continue;
    slower.push_back(p);
    perfect.push_back(table.label(p));
  }
  const Evaluation evaluation = evaluate_scores(perfect, table, slower);
  ASSERT_EQ(evaluation.tasks.size(), 1u);
  EXPECT_EQ(evaluation.metrics.rmse, 0);
  EXPECT_EQ(evaluation.metrics.peak[0], 1);
  EXPECT_EQ(evaluation.metrics.pairwise_accuracy, 1);
}

}  // namespace
}  // namespace pruner
