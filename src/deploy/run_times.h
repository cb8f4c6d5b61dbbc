// How long runs took, one by one -> what is told of them.
#pragma once

#include <span>
#include <vector>

#include "target/core_watch.h"

namespace pruner {

/// How often something is run to time it.
struct BenchOptions {
  int warm_up = 3;    // runs that are not timed
  int min_runs = 10;  // both are reached
  double min_s = 1;   // of all timed runs together
};

struct BenchResult {
  double median_ms = 0;
  double mean_ms = 0;
  double std_ms = 0;  // of the runs, with n - 1
  double min_ms = 0, max_ms = 0;
  double p90_ms = 0, p99_ms = 0;  // so many percent of the runs took no longer
  int runs = 0;
  int warm_up = 0;
  int threads = 0;  // 0: on a GPU
  CoreTime busy;    // of the cores, while it was timed

  /// Runs in a second, one after the other.
  double runs_per_s() const { return mean_ms > 0 ? 1e3 / mean_ms : 0; }
};

/// The value that `percent` of the values, at least one, are no greater than; between two by the
/// line from one to the other. 50: the median; 0 of no value.
double percentile(std::vector<double> values, double percent);

/// Of seconds. `threads` and `busy` are left to the caller.
BenchResult summarize(std::span<const double> runs_s, int warm_up);

}  // namespace pruner
