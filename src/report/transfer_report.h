// The Transfer-Tuning experiment (reference.md, experiment): what each network gains from the
// schedules of the others, and what a search needs for as much -> a table, TSV, JSON, and the
// paper's two plots.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "support/json.h"
#include "support/result.h"

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

Json to_json(const TransferTarget& target);
Result<TransferTarget> transfer_target_from_json(const Json& json);

/// A row a network, and the medians.
std::string print_transfer_table(const std::vector<TransferTarget>& targets);
/// A line a network and source.
std::string transfer_tsv(const std::vector<TransferTarget>& targets);
/// Figure 5a: speed-ups over the untuned module, of the transfer and of each rival in its time.
std::string speedup_svg(const std::vector<TransferTarget>& targets);
/// Figure 5b: search time, of the transfer and of each rival to match it.
std::string search_time_svg(const std::vector<TransferTarget>& targets);

}  // namespace pruner
