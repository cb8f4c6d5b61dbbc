// How well scores order measured programs: scores, labels and latencies of a task in, its metrics
// out; the metrics of many tasks and how often networks call them in, their averages out (TenSet's
// and Pruner's definitions).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "support/result.h"

namespace pruner {

/// The k of peak score, recall and Top-k.
inline constexpr std::array<int, 2> kTopK = {1, 5};
using PerK = std::array<double, kTopK.size()>;

/// The k of Best-k.
inline constexpr std::array<int, 3> kBestK = {1, 5, 20};
using PerBestK = std::array<double, kBestK.size()>;

/// `TaskMetrics` holds the metrics of one task with n programs, scores s and labels y.
struct TaskMetrics {
  int64_t programs = 0;
  double rmse = 0;  // root mean squared error of s against y
  double r2 = 0;    // 1 - sum (y - s)² / sum (y - mean y)²; 1 if the labels are all the same
  /// `pairwise_accuracy`: share of pairs i < j with [s_i > s_j] = [y_i > y_j]; 0.5 without a pair.
  double pairwise_accuracy = 0.5;
  double mape = 0;  // mean |y - s| / y
  PerK peak{};      // mean over j = 1..k of the best label of the first j, over the best label
  PerK recall{};    // share of the k best labels that are among the k best scores
  double best_s = 0;
  PerK top_s{};         // the least latency of the k best scores
  int64_t kept = 0;     // number of best-scored programs that are kept, like verified drafts
  PerBestK best_k_s{};  // k-th least latency of the programs kept; the greatest if fewer are kept
  /// The random_ fields are the averages over all random orders: exact, not drawn.
  PerK random_peak{}, random_top{}, random_top_s{};
  PerBestK random_best_k{}, random_best_k_s{};  // average best_s / best_k_s and average best_k_s
};

/// Returns the metrics of one task with at least one program. `labels` are relative throughputs
/// above 0. Equal scores stand in the order given. k and `keep` are cut to the number of programs;
/// if `keep` is 0, there is no Best-k.
TaskMetrics task_metrics(std::span<const float> scores,
                         std::span<const float> labels,
                         std::span<const double> latencies_s,
                         int64_t keep = 0);

/// `PairCount` counts the pairs of programs of one task with different times and scores: all pairs,
/// and the pairs that the scores order rightly. Chance orders half of the pairs rightly.
struct PairCount {
  int64_t right = 0, all = 0;

  void add(const PairCount& other) {
    right += other.right;
    all += other.all;
  }
};
/// Counts a pair as right if the higher score has the lower time.
PairCount count_pairs(std::span<const float> scores, std::span<const double> times_s);

/// `TaskCalls` is a task of a network, by its index in a list of metrics, and its number of calls.
struct TaskCalls {
  size_t task = 0;
  double calls = 1;
};

/// `NetworkScore` holds the scores of a network, with w being the calls of its tasks. `top` is
/// sum w best_s / sum w top_s (reference.md, top-k); `best_k` is the same with best_k_s (13.7).
struct NetworkScore {
  PerK top{}, random_top{};
  PerBestK best_k{}, random_best_k{};
};
NetworkScore network_score(std::span<const TaskMetrics> tasks, std::span<const TaskCalls> calls);

/// `Metrics` holds averages over tasks. Each task is weighted by its number of programs, except in
/// Top-k and Best-k.
struct Metrics {
  int64_t tasks = 0, programs = 0;
  double rmse = 0, r2 = 0, pairwise_accuracy = 0, mape = 0;
  PerK peak{}, recall{};
  /// TenSet averages the scores of networks (`top`); TLP divides the sums over all networks
  /// (`pooled`). If no network is known, each task counts as a network that calls it once.
  PerK top{};
  PerK random_peak{}, random_top{};
  /// `best_k_tasks` is the number of tasks that count for Best-k, which is averaged like `top`. If
  /// no network is known, these are the tasks with more programs than are kept.
  int64_t best_k_tasks = 0;
  PerBestK best_k{}, random_best_k{};
  NetworkScore pooled;
};

/// Averages the metrics of tasks; `networks` holds the tasks of each network.
Metrics average(std::span<const TaskMetrics> tasks,
                std::span<const std::vector<TaskCalls>> networks = {});

}  // namespace pruner
