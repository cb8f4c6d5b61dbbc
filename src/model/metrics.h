// How well scores order measured programs: scores, labels and latencies of a task in, its metrics
// out; the metrics of many tasks in, their averages out (TenSet's and Pruner's definitions).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "support/result.h"

namespace pruner {

/// The k of peak score, recall and Top-k.
inline constexpr std::array<int, 2> kTopK = {1, 5};
using PerK = std::array<double, kTopK.size()>;

/// Of one task. With n programs, scores s and labels y:
struct TaskMetrics {
  int64_t programs = 0;
  double rmse = 0;  // of s against y
  double r2 = 0;    // 1 - sum (y - s)² / sum (y - mean y)²; 1 where the labels are all the same
  /// Share of pairs i < j with [s_i > s_j] = [y_i > y_j]; 0.5 without a pair.
  double pairwise_accuracy = 0.5;
  double mape = 0;  // mean |y - s| / y
  PerK peak{};      // mean over j = 1..k of the best label of the first j, over the best label
  PerK recall{};    // of the k best labels, how many are among the k best scores, over k
  double best_s = 0;
  PerK top_s{};  // the least latency of the k best scores
  /// What a random order gives on average: exact, not drawn.
  PerK random_peak{}, random_top{}, random_top_s{};
};

/// `labels`: relative throughputs, above 0. Equal scores stand in the order given. At least one
/// program; k is at most their number.
TaskMetrics task_metrics(std::span<const float> scores,
                         std::span<const float> labels,
                         std::span<const double> latencies_s);

/// Over tasks. Weighted by the programs of each, except Top-k.
struct Metrics {
  int64_t tasks = 0, programs = 0;
  double rmse = 0, r2 = 0, pairwise_accuracy = 0, mape = 0;
  PerK peak{}, recall{};
  /// Of a network: sum w best_s / sum w top_s over its tasks. TenSet averages that over networks,
  /// TLP divides the sums over all of them. Where no network is known each task is one, of
  /// weight 1.
  PerK top{}, pooled_top{};
  PerK random_peak{}, random_top{}, random_pooled_top{};
};

Metrics average(std::span<const TaskMetrics> tasks);

}  // namespace pruner
