// What a tuning run shows while it goes: one line a round.
#pragma once

#include <cstdio>
#include <optional>
#include <string>

#include "tune/tune.h"

namespace pruner {

/// What a round's line says.
struct RoundLine {
  RoundSummary summary;
  std::string task_name;
  std::optional<double> best_s = {};  // of the task
  double flops = 0;
  int64_t trials = 0;  // of all tasks
  int64_t trial_limit = kNoTrialLimit;
  std::optional<double> total_s;  // estimated latency of all tasks
  std::optional<double> eta_s;
};

RoundLine round_line(const Tuner& tuner, const RoundSummary& summary, int64_t trial_limit);

/// "[ 120/1000] task  3: best 0.123 ms, 456.78 GFLOPS; 10 ok, 0 failed; explore 0.1 s, train 0.0 s,
/// build 0.3 s, measure 1.2 s; total 41.200 ms; ETA 5:12; conv2d ...".
std::string print(const RoundLine& line);

/// "1:05:09", "2:03", or "-" where it is not known.
std::string clock_text(std::optional<double> seconds);

/// Shows lines: on a terminal each takes the place of the last one, elsewhere they follow each
/// other.
class LiveLine {
 public:
  explicit LiveLine(std::FILE* out);
  ~LiveLine() { finish(); }
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  void show(const std::string& line);
  /// Leaves the last line standing.
  void finish();
  bool terminal() const { return terminal_; }

 private:
  std::FILE* out_;
  bool terminal_;
  bool open_ = false;
};

}  // namespace pruner
