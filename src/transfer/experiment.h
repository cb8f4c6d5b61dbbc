// The Transfer-Tuning experiment (its section 5; reference.md, experiment): each network of a set
// tuned, each from the schedules of each other, and what searches make of the same time.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transfer/transfer_run.h"

namespace pruner {

/// Holds the results of a network with the schedules of one source, or of a pool.
struct TransferredNetwork {
  std::string source;
  int64_t trials = 0;
  double search_s = 0;  // measuring the kernels, as the paper counts it
  double build_s = 0;   // the whole module, which the paper leaves out
  double latency_ms = 0;

  friend bool operator==(const TransferredNetwork&, const TransferredNetwork&) = default;
};

/// Holds the results of a search that gets the transfer's time, and then more until it is as good.
struct SearchRival {
  std::string mode;
  double equal_time_ms = 0;  // after the transfer's time, or its first stop beyond
  int64_t equal_time_trials = 0;
  bool matched = false;
  double match_s = 0;  // the first stop at which it is as fast; not matched: the last one
  int64_t match_trials = 0;

  friend bool operator==(const SearchRival&, const SearchRival&) = default;
};

/// Holds the results of a search that begins with the schedules of the other networks.
struct WarmStart {
  int64_t cold_trials = 0;
  bool reached = false;
  int64_t trials = 0;  // trials until the cold search's result
  double seconds = 0;

  friend bool operator==(const WarmStart&, const WarmStart&) = default;
};

struct TransferTarget {
  std::string network;
  double untuned_ms = 0, tuned_ms = 0, published_choice_ms = 0;
  int64_t tuned_trials = 0;
  double tuned_s = 0;
  std::vector<TransferredNetwork> one_to_one = {};  // a source each
  size_t chosen = 0;                                // index in one_to_one, by the heuristic
  TransferredNetwork pool = {};
  std::vector<SearchRival> rivals = {};
  WarmStart warm_start = {};

  const TransferredNetwork& transferred() const { return one_to_one[chosen]; }
  /// Returns the latency of the module that is kept: the untuned if the transferred is slower.
  double kept_ms(const TransferredNetwork& of) const { return std::min(of.latency_ms, untuned_ms); }
  /// (S - 1) / (Smax - 1) for a latency, S its speed-up over the untuned module. nullopt: tuning
  /// gains less than `least`.
  std::optional<double> share_of_gain(double latency_ms, double least = 1.1) const;

  friend bool operator==(const TransferTarget&, const TransferTarget&) = default;
};

/// Extends a transfer's options. `session` is of every search; its trials are those of a network's
/// own tuning.
struct ExperimentOptions : TransferOptions {
  Target target;
  int64_t stops = 30;  // looks at a search before it is given up
  bool minute_check =
      false;  // stops are a minute apart, as published; else half the transfer's time
};

/// Holds the tools of an experiment; all tools outlive the experiment.
struct ExperimentTools {
  std::function<Result<std::unique_ptr<Measurer>>(const Source& network)> make_measurer;
  const std::atomic<bool>& stop;
  std::function<void(const std::string& what, const Tuner& tuner, const RoundSummary& summary)>
      on_round;
  /// `on_target` is called when a network is done, the last of `targets`.
  std::function<Result<Unit>(const std::vector<TransferTarget>& targets)> on_target;
};

/// Goes on after the targets that are `done`. The searches' records and the modules are under
/// session.work_dir. Fewer targets than networks come back when it was stopped.
Result<std::vector<TransferTarget>> run_experiment(const std::vector<Source>& networks,
                                                   std::vector<TransferTarget> done,
                                                   const ExperimentOptions& options,
                                                   const ExperimentTools& tools);

}  // namespace pruner
