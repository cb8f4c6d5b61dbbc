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
  PerK top_s{};         // the least latency of the k best scores
  int64_t kept = 0;     // programs of the best scores, as drafts that are verified
  PerBestK best_k_s{};  // the k-th least latency of those kept; the greatest of fewer
  /// What a random order gives on average: exact, not drawn.
  PerK random_peak{}, random_top{}, random_top_s{};
  PerBestK random_best_k{}, random_best_k_s{};  // of best_s / best_k_s, and of best_k_s
};

/// `labels`: relative throughputs, above 0. Equal scores stand in the order given. At least one
/// program; k and `keep` are at most their number; 0 kept: no Best-k.
TaskMetrics task_metrics(std::span<const float> scores,
                         std::span<const float> labels,
                         std::span<const double> latencies_s,
                         int64_t keep = 0);

/// Pairs of programs of one task with different times and scores: all, and those that the scores
/// order rightly. 1/2 is chance.
struct PairCount {
  int64_t right = 0, all = 0;

  void add(const PairCount& other) {
    right += other.right;
    all += other.all;
  }
};
/// The higher score should have the lower time.
PairCount count_pairs(std::span<const float> scores, std::span<const double> times_s);

/// A task of a network, by its place in a list of metrics, and how often the network calls it.
struct TaskCalls {
  size_t task = 0;
  double calls = 1;
};

/// Of a network: sum w best_s / sum w top_s over its tasks, w being the calls (reference.md,
/// top-k), and the same of best_k_s (13.7).
struct NetworkScore {
  PerK top{}, random_top{};
  PerBestK best_k{}, random_best_k{};
};
NetworkScore network_score(std::span<const TaskMetrics> tasks, std::span<const TaskCalls> calls);

/// Over tasks. Weighted by the programs of each, except Top-k and Best-k.
struct Metrics {
  int64_t tasks = 0, programs = 0;
  double rmse = 0, r2 = 0, pairwise_accuracy = 0, mape = 0;
  PerK peak{}, recall{};
  /// TenSet averages the scores of networks, TLP divides the sums over all of them (`pooled`).
  /// Where no network is known each task is one that it is called once by.
  PerK top{};
  PerK random_peak{}, random_top{};
  /// As `top`, over tasks of more programs than are kept where no network is known.
  int64_t best_k_tasks = 0;
  PerBestK best_k{}, random_best_k{};
  NetworkScore pooled;
};

/// `networks`: the tasks of each.
Metrics average(std::span<const TaskMetrics> tasks,
                std::span<const std::vector<TaskCalls>> networks = {});

}  // namespace pruner
