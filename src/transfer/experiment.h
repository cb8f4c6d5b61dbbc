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

/// A network with the schedules of one source, or of a pool.
struct TransferredNetwork {
  std::string source;
  int64_t trials = 0;
  double search_s = 0;  // measuring the kernels, as the paper counts it
  double build_s = 0;   // the whole module, which the paper leaves out
  double latency_ms = 0;

  friend bool operator==(const TransferredNetwork&, const TransferredNetwork&) = default;
};

/// A search that is given the time of the transfer, and then more until it is as good.
struct SearchRival {
  std::string mode;
  double equal_time_ms = 0;  // after the transfer's time, or its first stop beyond
  int64_t equal_time_trials = 0;
  bool matched = false;
  double match_s = 0;  // the first stop at which it is as fast; not matched: the last one
  int64_t match_trials = 0;

  friend bool operator==(const SearchRival&, const SearchRival&) = default;
};

/// A search that begins with the schedules of the others.
struct WarmStart {
  int64_t cold_trials = 0;
  bool reached = false;
  int64_t trials = 0;  // to it
  double seconds = 0;

  friend bool operator==(const WarmStart&, const WarmStart&) = default;
};

struct TransferTarget {
  std::string network;
  double untuned_ms = 0, tuned_ms = 0, published_choice_ms = 0;
  int64_t tuned_trials = 0;
  double tuned_s = 0;
  std::vector<TransferredNetwork> one_to_one = {};  // a source each
  size_t chosen = 0;                                // of them, by the heuristic
  TransferredNetwork pool = {};
  std::vector<SearchRival> rivals = {};
  WarmStart warm_start = {};

  const TransferredNetwork& transferred() const { return one_to_one[chosen]; }
  /// Of the module that is kept: the untuned one where the transferred one is slower.
  double kept_ms(const TransferredNetwork& of) const { return std::min(of.latency_ms, untuned_ms); }
  /// (S - 1) / (Smax - 1) for a latency, S its speed-up over the untuned module. nullopt: tuning
  /// gains less than `least`.
  std::optional<double> share_of_gain(double latency_ms, double least = 1.1) const;

  friend bool operator==(const TransferTarget&, const TransferTarget&) = default;
};

/// As of a transfer; `session` is of every search, its trials those of a network's own tuning.
struct ExperimentOptions : TransferOptions {
  Target target;
  int64_t stops = 30;  // at which a search is looked at before it is given up
  bool minute_check =
      false;  // stops are a minute apart, as published; else half the transfer's time
};

/// What an experiment works with; all of it outlives the experiment.
struct ExperimentTools {
  std::function<Result<std::unique_ptr<Measurer>>(const Source& network)> make_measurer;
  const std::atomic<bool>& stop;
  std::function<void(const std::string& what, const Tuner& tuner, const RoundSummary& summary)>
      on_round;
  /// A network was done, the last of `targets`.
  std::function<Result<Unit>(const std::vector<TransferTarget>& targets)> on_target;
};

/// Goes on after the targets that are `done`. The searches' records and the modules are under
/// session.work_dir. Fewer targets than networks come back when it was stopped.
Result<std::vector<TransferTarget>> run_experiment(const std::vector<Source>& networks,
                                                   std::vector<TransferTarget> done,
                                                   const ExperimentOptions& options,
                                                   const ExperimentTools& tools);

}  // namespace pruner
