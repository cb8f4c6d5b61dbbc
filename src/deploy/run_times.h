// Summarizes the times of single runs.
#pragma once

#include <span>
#include <vector>

#include "target/core_watch.h"

namespace pruner {

/// Holds how often a call is run to time it.
struct BenchOptions {
  int warm_up = 3;    // runs that are not timed
  int min_runs = 10;  // least number of timed runs
  double min_s = 1;   // least time of all timed runs together
};

struct BenchResult {
  double median_ms = 0;
  double mean_ms = 0;
  double std_ms = 0;  // standard deviation of the runs, with n - 1
  double min_ms = 0, max_ms = 0;
  double p90_ms = 0, p99_ms = 0;  // so many percent of the runs took no longer
  int runs = 0;
  int warm_up = 0;
  int threads = 0;  // 0: on a GPU
  CoreTime busy;    // time of the cores during the measurement

  /// Runs in a second, one after the other.
  double runs_per_s() const { return mean_ms > 0 ? 1e3 / mean_ms : 0; }
};

/// Returns the value that `percent` of the values, at least one, do not exceed, interpolated
/// linearly between two values. The median is at 50; the result of no values is 0.
double percentile(std::vector<double> values, double percent);

/// Summarizes the seconds of runs. `threads` and `busy` are left to the caller.
BenchResult summarize(std::span<const double> runs_s, int warm_up);

}  // namespace pruner
