#include "model/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace pruner {
namespace {

std::vector<double> latencies_of(const std::vector<float>& labels) {
  std::vector<double> latencies_s;
  for (const float label : labels) latencies_s.push_back(label > 0 ? 2.0 / label : 1e10);
  return latencies_s;
}

TaskMetrics metrics_of(const std::vector<float>& scores, const std::vector<float>& labels) {
  return task_metrics(scores, labels, latencies_of(labels));
}

// The golden numbers of TenSet's definitions, computed in double precision.
TEST(TaskMetrics, AgreeWithTheGoldenNumbers) {
  struct Row {
    std::vector<float> scores, labels;
    double accuracy, peak_at_1, rmse, r2;
  };
  const Row rows[] = {
      {{0.1f, 0.4f, 0.35f, 0.8f}, {1, 0.5f, 0.25f, 0}, 0.166667, 0, 0.606218, -1.688000},
      {{2, 1, 0}, {1, 0.5f, 0.1f}, 1, 1, 0.648074, -2.098361},
      {{0.3f, -0.2f, 0.9f, 0.9f, -1.5f}, {0.2f, 0.9f, 1, 0.4f, 0}, 0.7, 1, 0.863713, -3.907895}};
  for (const Row& row : rows) {
    const TaskMetrics task = metrics_of(row.scores, row.labels);
    EXPECT_NEAR(task.pairwise_accuracy, row.accuracy, 1e-6);
    EXPECT_NEAR(task.peak[0], row.peak_at_1, 1e-6);
    EXPECT_NEAR(task.rmse, row.rmse, 1e-6);
    EXPECT_NEAR(task.r2, row.r2, 1e-5);
  }
}

TEST(TaskMetrics, LookAtTheBestScores) {
  // The labels by falling score are 0.5, 0.25, 0.8, 1, 0.2, 0.1.
  const TaskMetrics task = metrics_of({3, 5, 6, 4, 2, 1}, {1, 0.25f, 0.5f, 0.8f, 0.2f, 0.1f});
  EXPECT_NEAR(task.peak[0], 0.5, 1e-12);
  EXPECT_NEAR(task.peak[1], (0.5 + 0.5 + 0.8 + 1 + 1) / 5, 1e-7);
  EXPECT_EQ(task.recall[0], 0);
  EXPECT_EQ(task.recall[1], 1);
  EXPECT_EQ(task.best_s, 2);
  EXPECT_EQ(task.top_s[0], 4);
  EXPECT_EQ(task.top_s[1], 2);
  EXPECT_NEAR(task.mape, (2 + 19 + 11 + 4 + 9 + 9) / 6.0, 1e-5);
}

TEST(TaskMetrics, ATieCountsAsNotGreater) {
  EXPECT_EQ(metrics_of({1, 1}, {0.5f, 1}).pairwise_accuracy, 1);
  EXPECT_EQ(metrics_of({1, 1}, {1, 0.5f}).pairwise_accuracy, 0);
}

TEST(TaskMetrics, OneProgramHasNoPairAndNoSpread) {
  const TaskMetrics task = metrics_of({7}, {1});
  EXPECT_EQ(task.pairwise_accuracy, 0.5);
  EXPECT_EQ(task.r2, 1);
  EXPECT_EQ(task.peak[1], 1);
  EXPECT_EQ(task.recall[1], 1);
}

TEST(TaskMetrics, KnowWhatARandomOrderGives) {
  const TaskMetrics task = metrics_of({0, 0, 0}, {0.2f, 1, 0.5f});
  EXPECT_NEAR(task.random_peak[0], (0.2 + 1 + 0.5) / 3, 1e-7);
  EXPECT_NEAR(task.random_top[0], (0.2 + 1 + 0.5) / 3, 1e-7);
  EXPECT_NEAR(task.random_top_s[0], (10 + 2 + 4) / 3.0, 1e-6);
  // The best label of two draws is 1, 1 or 0.5; the best of three draws is 1.
  EXPECT_NEAR(task.random_peak[1], (1.7 / 3 + 2.5 / 3 + 1) / 3, 1e-7);
  EXPECT_NEAR(task.random_top[1], 1, 1e-12);
}

TEST(Metrics, WeighTasksByTheirProgramsButTopK) {
  const TaskMetrics first = metrics_of({2, 1, 0}, {1, 0.5f, 0.1f});
  const TaskMetrics second = metrics_of({0}, {0.5f});
  const TaskMetrics wrong = task_metrics(
      std::vector<float>{2, 1}, std::vector<float>{0.5f, 1}, std::vector<double>{20, 10});
  const Metrics metrics = average(std::vector{first, second, wrong});
  EXPECT_EQ(metrics.tasks, 3);
  EXPECT_EQ(metrics.programs, 6);
  EXPECT_NEAR(metrics.pairwise_accuracy, (3 * 1 + 1 * 0.5 + 2 * 0) / 6, 1e-12);
  EXPECT_NEAR(metrics.peak[0], (3 + 1 + 2 * 0.5) / 6, 1e-12);
  EXPECT_NEAR(metrics.rmse,
              std::sqrt((3 * first.rmse * first.rmse + 0.25 + 2 * wrong.rmse * wrong.rmse) / 6),
              1e-7);
  EXPECT_NEAR(metrics.top[0], (1 + 1 + 0.5) / 3, 1e-12);
  EXPECT_NEAR(metrics.pooled.top[0], (2 + 4 + 10) / (2 + 4 + 20.0), 1e-12);
  EXPECT_NEAR(metrics.pooled.top[1], 1, 1e-12);
}

TEST(TaskMetrics, TakeTheKthBestOfThoseKept) {
  // The programs of 4, 8 and 2.5 s are kept.
  const std::vector<float> labels = {1, 0.25f, 0.5f, 0.8f, 0.2f, 0.1f};
  const std::vector<double> latencies_s = latencies_of(labels);
  const TaskMetrics task =
      task_metrics(std::vector<float>{3, 5, 6, 4, 2, 1}, labels, latencies_s, 3);
  EXPECT_EQ(task.kept, 3);
  EXPECT_NEAR(task.best_k_s[0], 2.5, 1e-6);
  EXPECT_EQ(task.best_k_s[1], 8) << "of fewer than five the last";
  // Two random programs of three are kept: the better program comes first, then the other.
  const std::vector<float> three = {0.2f, 1, 0.5f};
  const TaskMetrics two = task_metrics(std::vector<float>{0, 0, 0}, three, latencies_of(three), 2);
  EXPECT_NEAR(two.random_best_k[0], (1 + 1 + 0.5) / 3, 1e-7);
  EXPECT_NEAR(two.random_best_k[1], (0.2 + 0.2 + 0.5) / 3, 1e-7);
  EXPECT_NEAR(two.random_best_k_s[1], (10 + 10 + 4) / 3.0, 1e-6);
  EXPECT_EQ(task_metrics(three, three, latencies_of(three), 9).kept, 3);
  EXPECT_EQ(metrics_of(three, three).kept, 0);
}

// A task of 10 s, found at 20 s, and one of 2 s, found at 2 s, which is called three times.
TEST(Metrics, WeighTheTasksOfANetworkByItsCalls) {
  const std::vector<TaskMetrics> tasks = {
      task_metrics(std::vector<float>{2, 1}, std::vector<float>{0.5f, 1}, std::vector{20., 10.}, 1),
      task_metrics(std::vector<float>{2, 1}, std::vector<float>{1, 0.5f}, std::vector{2., 4.}, 1),
      task_metrics(std::vector<float>{1}, std::vector<float>{1}, std::vector{100.}, 1)};
  const std::vector<std::vector<TaskCalls>> networks = {{{0, 1}, {1, 3}}, {{1, 2}}};
  const NetworkScore first = network_score(tasks, networks[0]);
  EXPECT_NEAR(first.top[0], (10 + 3 * 2) / (20 + 3 * 2.0), 1e-12);
  EXPECT_NEAR(first.best_k[0], first.top[0], 1e-12);
  EXPECT_NEAR(first.random_top[0], (10 + 3 * 2) / (15 + 3 * 3.0), 1e-12);
  const Metrics metrics = average(tasks, networks);
  EXPECT_NEAR(metrics.top[0], (first.top[0] + 1) / 2, 1e-12);
  EXPECT_NEAR(metrics.pooled.top[0], (10 + 5 * 2) / (20 + 5 * 2.0), 1e-12);
  EXPECT_EQ(metrics.tasks, 3) << "a task of no network counts in the rest";
}

// The second task has no more programs than are kept, which says nothing.
TEST(Metrics, TakeBestKOfTasksThatHaveMorePrograms) {
  const std::vector<TaskMetrics> tasks = {
      task_metrics(std::vector<float>{2, 1}, std::vector<float>{0.5f, 1}, std::vector{20., 10.}, 1),
      task_metrics(std::vector<float>{1}, std::vector<float>{1}, std::vector{100.}, 1)};
  const Metrics metrics = average(tasks);
  EXPECT_EQ(metrics.best_k_tasks, 1);
  EXPECT_NEAR(metrics.best_k[0], 0.5, 1e-12);
  EXPECT_NEAR(metrics.pooled.best_k[0], 0.5, 1e-12);
}

// Two of the four scores are equal, and so are two of the four times.
TEST(Metrics, PairsThatAreAlikeAreNone) {
  const PairCount count =
      count_pairs(std::vector<float>{4, 3, 3, 1}, std::vector{1.0, 2.0, 5.0, 2.0});
  EXPECT_EQ(count.all, 4) << "not (3, 3), not the two of 2 s";
  EXPECT_EQ(count.right, 3) << "the last is faster than the third, and scored below it";
  EXPECT_EQ(count_pairs({}, {}).all, 0);
}

TEST(Metrics, OfNoTasksAreNone) { EXPECT_EQ(average({}).tasks, 0); }

}  // namespace
}  // namespace pruner
