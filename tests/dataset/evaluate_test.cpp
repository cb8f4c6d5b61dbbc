#include "dataset/evaluate.h"

#include "dataset/synthetic_table.h"
#include "golden.h"
#include "own_path.h"
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

/// A network of the tasks "a" (called `calls` times), "b" and what `more` says.
struct NetworkOfTwo {
  explicit NetworkOfTwo(int calls, const std::string& more = "")
      : path(own_path("evaluate_tasks.jsonl")), networks(*network_set("resnet_50")) {
    const auto line = [](const std::string& key, int weight) {
      return R"({"network": "resnet_50", "input_shape": [1], "workload_key": ")" + key +
             R"(", "weight": )" + std::to_string(weight) + "}\n";
    };
    EXPECT_TRUE(
        write_file(path, line("a", calls) + line("b", 1) + (more.empty() ? "" : line(more, 1)))
            .ok());
    EXPECT_TRUE(networks.add_file(path).ok());
  }
  ~NetworkOfTwo() { std::filesystem::remove(path); }

  std::string path;
  NetworkTasks networks;
};

TEST_F(TwoTasks, ANetworksTasksCountAsOftenAsItCallsThem) {
  const std::vector<size_t> all = select(table, std::nullopt, Judged::kAll);
  const std::vector<float> scores = {1, 2, 3, 1, 2};
  const NetworkOfTwo thrice(3);
  const Evaluation weighted = evaluate_scores(scores, table, all, {&thrice.networks, 0});
  ASSERT_TRUE(weighted.weighted);
  ASSERT_EQ(weighted.networks.size(), 1u);
  EXPECT_EQ(weighted.networks[0].name, "resnet_50 1");
  const TaskMetrics &a = weighted.tasks[0].metrics, &b = weighted.tasks[1].metrics;
  const double expected = (3 * a.best_s + b.best_s) / (3 * a.top_s[0] + b.top_s[0]);
  EXPECT_NEAR(weighted.networks[0].score->top[0], expected, 1e-12);
  EXPECT_NEAR(weighted.metrics.pooled.top[0], expected, 1e-12);
  const Evaluation plain = evaluate_scores(scores, table, all);
  EXPECT_FALSE(plain.weighted);
  EXPECT_NEAR(
      plain.metrics.pooled.top[0], (a.best_s + b.best_s) / (a.top_s[0] + b.top_s[0]), 1e-12);
}

TEST_F(TwoTasks, ANetworkWithoutOneOfItsTasksHasNoScore) {
  const std::vector<size_t> all = select(table, std::nullopt, Judged::kAll);
  const NetworkOfTwo more(3, "c");
  const Evaluation evaluation =
      evaluate_scores(std::vector<float>{1, 2, 3, 1, 2}, table, all, {&more.networks, 0});
  EXPECT_FALSE(evaluation.weighted);
  ASSERT_EQ(evaluation.networks.size(), 1u);
  EXPECT_EQ(evaluation.networks[0].missing, 1);
  EXPECT_FALSE(evaluation.networks[0].score);
}

TEST_F(TwoTasks, ScoresOfAnyUnitBecomeSharesOfEachTasksBest) {
  const std::vector<size_t> all = select(table, std::nullopt, Judged::kAll);
  EXPECT_EQ(relative_scores(std::vector<float>{10, 40, 0, 3, 1.5f}, table, all),
            (std::vector<float>{0.25f, 1, 0, 1, 0.5f}));
}

}  // namespace
}  // namespace pruner
