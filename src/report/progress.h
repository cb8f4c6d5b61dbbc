// What a tuning run shows while it goes, a line a round: first what one waits for, then what the
// time went into.
#pragma once

#include <optional>
#include <string>

#include "target/core_watch.h"
#include "tune/tune.h"

namespace pruner {

/// What a round's line says.
struct RoundLine {
  std::string run = {};  // which of several: "seed 0 ansor", a network; empty: there is one
  RoundSummary summary;
  std::string task_name;
  std::optional<double> best_s = {};  // of the task
  double flops = 0;
  int64_t trials = 0;  // of all tasks
  int64_t trial_limit = kNoTrialLimit;
  std::optional<double> total_s;  // estimated latency of all tasks
  double elapsed_s = 0;           // of what `eta_s` is the rest of
  std::optional<double> eta_s;
  std::optional<CoreTime> busy = {};  // while kernels were timed
};

RoundLine round_line(const Tuner& tuner, const RoundSummary& summary, int64_t trial_limit);

/// Seconds until `limit` trials are there at the pace of the first ones; nullopt before any.
std::optional<double> eta_s(double elapsed_s, int64_t trials, int64_t limit);

/// No line is as wide as this.
inline constexpr size_t kAnyWidth = static_cast<size_t>(-1);

/// "[ 120/1000] total 41.200 ms, ETA 5:12; 3: matmul 64 64 64, best 123 us, 456.78 GFLOPS; 10 ok, 0
/// failed; explore 0.1 s, train 0.0 s, build 0.3 s, measure 1.2 s"; details at the end give way
/// where there are less than `width` columns.
std::string print(const RoundLine& line, size_t width = kAnyWidth);
/// What of it is of all tasks, "[ 120/1000] total 41.200 ms, ETA 5:12"; and what is of the round,
/// in which details at the end give way where there are less than `width` columns.
std::string print_whole(const RoundLine& line);
std::string print_round(const RoundLine& line, size_t width = kAnyWidth);

/// The text, or its beginning and "..." where it is wider; bytes are columns.
std::string fit(std::string text, size_t width);

}  // namespace pruner
