#include "model/metrics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "support/check.h"

namespace pruner {
namespace {

constexpr double kSame = 1e-6;  // labels with a smaller sum of squares count as all the same

std::vector<size_t> descending(std::span<const float> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(
      order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] > values[b]; });
  return order;
}

/// Returns the expected k-th greatest of `draws` draws without replacement from ascending values.
double expected_greatest(std::span<const double> sorted, size_t draws, size_t k = 1) {
  const size_t n = sorted.size();
  // `share` is the probability that the k-th greatest is the i-th of n values:
  // C(n - i, k - 1) C(i - 1, draws - k) / C(n, draws). The loop goes from the greatest i downwards.
  double share = 1, sum = 0;
  for (size_t j = 0; j < k; ++j)
    share *= static_cast<double>(draws - j) / static_cast<double>(n - j);
  for (size_t i = n - k + 1; i > draws - k; --i) {
    sum += share * sorted[i - 1];
    if (i == 1) break;
    share *= static_cast<double>(n - i + 1) / static_cast<double>(n - i + 2 - k) *
             static_cast<double>(i - 1 - (draws - k)) / static_cast<double>(i - 1);
  }
  return sum;
}

/// Returns the mean of the expected greatest value over 1..k draws.
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
                         std::span<const double> latencies_s,
                         int64_t keep) {
  const size_t n = scores.size();
  CHECK(n > 0 && labels.size() == n && latencies_s.size() == n);
  TaskMetrics task{.programs = static_cast<int64_t>(n)};
  add_errors(scores, labels, task);
  const std::vector<size_t> by_score = descending(scores), by_label = descending(labels);
  const double best_label = labels[by_label[0]];
  task.best_s = *std::min_element(latencies_s.begin(), latencies_s.end());
  std::vector<double> ascending_labels(labels.begin(), labels.end());
  std::vector<double> ascending_speeds;  // latencies, negated: the greatest is the least latency
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
  task.kept = std::min(keep, task.programs);
  if (task.kept == 0) return task;
  const auto kept = static_cast<size_t>(task.kept);
  std::vector<double> kept_s;
  for (size_t j = 0; j < kept; ++j) kept_s.push_back(latencies_s[by_score[j]]);
  std::sort(kept_s.begin(), kept_s.end());
  for (size_t c = 0; c < kBestK.size(); ++c) {
    const size_t k = std::min(static_cast<size_t>(kBestK[c]), kept);
    task.best_k_s[c] = kept_s[k - 1];
    task.random_best_k[c] = expected_greatest(ascending_labels, kept, k);
    task.random_best_k_s[c] = -expected_greatest(ascending_speeds, kept, k);
  }
  return task;
}

PairCount count_pairs(std::span<const float> scores, std::span<const double> times_s) {
  PairCount count;
  for (size_t i = 0; i < times_s.size(); ++i) {
    for (size_t j = i + 1; j < times_s.size(); ++j) {
      if (times_s[i] == times_s[j] || scores[i] == scores[j]) continue;
      ++count.all;
      count.right += (times_s[i] < times_s[j]) == (scores[i] > scores[j]);
    }
  }
  return count;
}

NetworkScore network_score(std::span<const TaskMetrics> tasks, std::span<const TaskCalls> calls) {
  double best_s = 0;
  NetworkScore seconds;  // sums, then shares
  for (const TaskCalls& of : calls) {
    const TaskMetrics& task = tasks[of.task];
    best_s += of.calls * task.best_s;
    for (size_t c = 0; c < kTopK.size(); ++c) {
      seconds.top[c] += of.calls * task.top_s[c];
      seconds.random_top[c] += of.calls * task.random_top_s[c];
    }
    for (size_t c = 0; c < kBestK.size(); ++c) {
      seconds.best_k[c] += of.calls * task.best_k_s[c];
      seconds.random_best_k[c] += of.calls * task.random_best_k_s[c];
    }
  }
  const auto divide = [&](auto& sums) {
    for (double& sum : sums) sum = sum > 0 ? best_s / sum : 0;
  };
  divide(seconds.top);
  divide(seconds.random_top);
  divide(seconds.best_k);
  divide(seconds.random_best_k);
  return seconds;
}

namespace {

template <size_t N>
void add(const std::array<double, N>& values, std::array<double, N>& sums) {
  for (size_t c = 0; c < N; ++c) sums[c] += values[c];
}

template <size_t N>
void divide(std::array<double, N>& sums, int64_t count) {
  for (double& sum : sums) sum = count > 0 ? sum / static_cast<double>(count) : 0;
}

/// Adds Top-k and Best-k with each task as a network of its own.
void add_task_scores(std::span<const TaskMetrics> tasks, Metrics& sum) {
  std::vector<TaskCalls> all, drafted;
  for (size_t t = 0; t < tasks.size(); ++t) {
    const TaskCalls one[] = {{t}};
    const NetworkScore score = network_score(tasks, one);
    all.push_back({t});
    add(score.top, sum.top);
    add(tasks[t].random_top, sum.random_top);
    if (tasks[t].kept == 0 || tasks[t].kept == tasks[t].programs) continue;
    drafted.push_back({t});
    add(score.best_k, sum.best_k);
    add(tasks[t].random_best_k, sum.random_best_k);
  }
  sum.best_k_tasks = static_cast<int64_t>(drafted.size());
  divide(sum.top, sum.tasks);
  divide(sum.random_top, sum.tasks);
  divide(sum.best_k, sum.best_k_tasks);
  divide(sum.random_best_k, sum.best_k_tasks);
  sum.pooled = network_score(tasks, all);
  const NetworkScore of_drafted = network_score(tasks, drafted);
  sum.pooled.best_k = of_drafted.best_k;
  sum.pooled.random_best_k = of_drafted.random_best_k;
}

void add_network_scores(std::span<const TaskMetrics> tasks,
                        std::span<const std::vector<TaskCalls>> networks,
                        Metrics& sum) {
  std::vector<TaskCalls> all;
  for (const std::vector<TaskCalls>& network : networks) {
    const NetworkScore score = network_score(tasks, network);
    all.insert(all.end(), network.begin(), network.end());
    add(score.top, sum.top);
    add(score.random_top, sum.random_top);
    add(score.best_k, sum.best_k);
    add(score.random_best_k, sum.random_best_k);
  }
  const auto count = static_cast<int64_t>(networks.size());
  sum.best_k_tasks = !tasks.empty() && tasks[0].kept > 0 ? static_cast<int64_t>(all.size()) : 0;
  divide(sum.top, count);
  divide(sum.random_top, count);
  divide(sum.best_k, count);
  divide(sum.random_best_k, count);
  sum.pooled = network_score(tasks, all);
}

}  // namespace

Metrics average(std::span<const TaskMetrics> tasks,
                std::span<const std::vector<TaskCalls>> networks) {
  Metrics sum;
  for (const TaskMetrics& task : tasks) {
    const auto weight = static_cast<double>(task.programs);
    ++sum.tasks;
    sum.programs += task.programs;
    sum.rmse += weight * task.rmse * task.rmse;
    sum.r2 += weight * task.r2;
    sum.pairwise_accuracy += weight * task.pairwise_accuracy;
    sum.mape += weight * task.mape;
    for (size_t c = 0; c < kTopK.size(); ++c) {
      sum.peak[c] += weight * task.peak[c];
      sum.recall[c] += weight * task.recall[c];
      sum.random_peak[c] += weight * task.random_peak[c];
    }
  }
  if (tasks.empty()) return sum;
  const auto programs = static_cast<double>(sum.programs);
  sum.rmse = std::sqrt(sum.rmse / programs);
  for (double* value : {&sum.r2, &sum.pairwise_accuracy, &sum.mape}) *value /= programs;
  divide(sum.peak, sum.programs);
  divide(sum.recall, sum.programs);
  divide(sum.random_peak, sum.programs);
  networks.empty() ? add_task_scores(tasks, sum) : add_network_scores(tasks, networks, sum);
  return sum;
}

}  // namespace pruner
