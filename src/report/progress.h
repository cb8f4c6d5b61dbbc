// The progress of a tuning run, a line a round: first the numbers that the user waits for, then the
// uses of the time.
#pragma once

#include <optional>
#include <string>

#include "target/core_watch.h"
#include "tune/tune.h"

namespace pruner {

/// `RoundLine` holds the contents of a round's line.
struct RoundLine {
  std::string run = {};  // name among several runs: "seed 0 ansor", a network; else empty
  RoundSummary summary;
  std::string task_name;
  std::optional<double> best_s = {};  // best time of the task
  double flops = 0;
  int64_t trials = 0;  // trials of all tasks
  int64_t trial_limit = kNoTrialLimit;
  std::optional<double> total_s;  // estimated latency of all tasks
  double elapsed_s = 0;           // time so far; `eta_s` is the rest
  std::optional<double> eta_s;
  std::optional<CoreTime> busy = {};  // cores' time while kernels were timed
};

RoundLine round_line(const Tuner& tuner, const RoundSummary& summary, int64_t trial_limit);

/// Returns the seconds until `limit` trials are done at the pace so far; nullopt before any trial.
std::optional<double> eta_s(double elapsed_s, int64_t trials, int64_t limit);

/// `kAnyWidth` is a width that no line has.
inline constexpr size_t kAnyWidth = static_cast<size_t>(-1);

/// Prints "[ 120/1000] total 41.200 ms, ETA 5:12; 3: matmul 64 64 64, best 123 us, 456.78 GFLOPS;
/// 10 ok, 0 failed; explore 0.1 s, train 0.0 s, build 0.3 s, measure 1.2 s". Details at the end are
/// left out if `width` columns are too few.
std::string print(const RoundLine& line, size_t width = kAnyWidth);
/// print_whole() prints the part on all tasks, "[ 120/1000] total 41.200 ms, ETA 5:12".
/// print_round() prints the part on the round; details at the end are left out if `width` is small.
std::string print_whole(const RoundLine& line);
std::string print_round(const RoundLine& line, size_t width = kAnyWidth);

/// Returns the text, or its beginning and "..." if the text is wider; bytes are columns.
std::string fit(std::string text, size_t width);

}  // namespace pruner
