#include "model/metrics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "support/check.h"

namespace pruner {
namespace {

constexpr double kSame = 1e-6;  // less of a sum of squares counts as labels that are all the same

std::vector<size_t> descending(std::span<const float> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(
      order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] > values[b]; });
  return order;
}

/// The expected greatest of `k` values drawn without replacement from `sorted` (ascending).
double expected_greatest(std::span<const double> sorted, size_t k) {
  const size_t n = sorted.size();
  // That the i-th of n is the greatest: C(i - 1, k - 1) / C(n, k), from i = n downwards.
  double share = static_cast<double>(k) / static_cast<double>(n), sum = 0;
  for (size_t i = n; i >= k; --i) {
    sum += share * sorted[i - 1];
    if (i > k) share *= static_cast<double>(i - k) / static_cast<double>(i - 1);
  }
  return sum;
}

/// As above, the mean over 1..k draws.
double expected_peak(std::span<const double> sorted, size_t k) {
  double sum = 0;
  for (size_t j = 1; j <= k; ++j) sum += expected_greatest(sorted, j);
  return sum / static_cast<double>(k);
}

void add_errors(std::span<const float> scores, std::span<const float> labels, TaskMetrics& task) {
  const size_t n = scores.size();
  const double mean = std::accumulate(labels.begin(), labels.end(), 0.0) / static_cast<double>(n);
  double residual = 0, spread = 0, relative = 0;
  for (size_t i = 0; i < n; ++i) {
    const double error = double{labels[i]} - scores[i], deviation = labels[i] - mean;
    residual += error * error;
    spread += deviation * deviation;
    relative += std::abs(error) / labels[i];
  }
  task.rmse = std::sqrt(residual / static_cast<double>(n));
  task.r2 = spread < kSame ? 1 : 1 - residual / spread;
  task.mape = relative / static_cast<double>(n);
  int64_t alike = 0;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i + 1; j < n; ++j) alike += (scores[i] > scores[j]) == (labels[i] > labels[j]);
  }
  if (n > 1)
    task.pairwise_accuracy = 2.0 * static_cast<double>(alike) / static_cast<double>(n * (n - 1));
}

}  // namespace

TaskMetrics task_metrics(std::span<const float> scores,
                         std::span<const float> labels,
                         std::span<const double> latencies_s) {
  const size_t n = scores.size();
  CHECK(n > 0 && labels.size() == n && latencies_s.size() == n);
  TaskMetrics task{.programs = static_cast<int64_t>(n)};
  add_errors(scores, labels, task);
  const std::vector<size_t> by_score = descending(scores), by_label = descending(labels);
  const double best_label = labels[by_label[0]];
  task.best_s = *std::min_element(latencies_s.begin(), latencies_s.end());
  std::vector<double> ascending_labels(labels.begin(), labels.end());
  std::vector<double> ascending_speeds;  // of which the greatest is the least latency, negated
  for (double& label : ascending_labels) label /= best_label;
  for (const double s : latencies_s) ascending_speeds.push_back(-s);
  std::sort(ascending_labels.begin(), ascending_labels.end());
  std::sort(ascending_speeds.begin(), ascending_speeds.end());
  for (size_t c = 0; c < kTopK.size(); ++c) {
    const size_t k = std::min(static_cast<size_t>(kTopK[c]), n);
    double greatest = 0, peaks = 0, least_s = latencies_s[by_score[0]];
    size_t found = 0;
    for (size_t j = 0; j < k; ++j) {
      greatest = std::max(greatest, double{labels[by_score[j]]});
      peaks += greatest / best_label;
      least_s = std::min(least_s, latencies_s[by_score[j]]);
      const auto last = by_label.begin() + static_cast<ptrdiff_t>(k);
      found += std::find(by_label.begin(), last, by_score[j]) != last;
    }
    task.peak[c] = peaks / static_cast<double>(k);
    task.recall[c] = static_cast<double>(found) / static_cast<double>(k);
    task.top_s[c] = least_s;
    task.random_peak[c] = expected_peak(ascending_labels, k);
    task.random_top[c] = expected_greatest(ascending_labels, k);
    task.random_top_s[c] = -expected_greatest(ascending_speeds, k);
  }
  return task;
}

Metrics average(std::span<const TaskMetrics> tasks) {
  Metrics sum;
  double best_s = 0;
  PerK top_s{}, random_top_s{};
  for (const TaskMetrics& task : tasks) {
    const auto weight = static_cast<double>(task.programs);
    ++sum.tasks;
    sum.programs += task.programs;
    sum.rmse += weight * task.rmse * task.rmse;
    sum.r2 += weight * task.r2;
    sum.pairwise_accuracy += weight * task.pairwise_accuracy;
    sum.mape += weight * task.mape;
    best_s += task.best_s;
    for (size_t c = 0; c < kTopK.size(); ++c) {
      sum.peak[c] += weight * task.peak[c];
      sum.recall[c] += weight * task.recall[c];
      sum.random_peak[c] += weight * task.random_peak[c];
      sum.top[c] += task.best_s / task.top_s[c];
      sum.random_top[c] += task.random_top[c];
      top_s[c] += task.top_s[c];
      random_top_s[c] += task.random_top_s[c];
    }
  }
  if (tasks.empty()) return sum;
  const auto programs = static_cast<double>(sum.programs), count = static_cast<double>(sum.tasks);
  sum.rmse = std::sqrt(sum.rmse / programs);
  for (double* value : {&sum.r2, &sum.pairwise_accuracy, &sum.mape}) *value /= programs;
  for (size_t c = 0; c < kTopK.size(); ++c) {
    for (double* value : {&sum.peak[c], &sum.recall[c], &sum.random_peak[c]}) *value /= programs;
    sum.top[c] /= count;
    sum.random_top[c] /= count;
    sum.pooled_top[c] = best_s / top_s[c];
    sum.random_pooled_top[c] = best_s / random_top_s[c];
  }
  return sum;
}

}  // namespace pruner
