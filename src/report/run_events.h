// A run as a stream of events, for programs: one JSON object a line, written when it happens.
// docs/cli.md has their fields.
#pragma once

#include <chrono>
#include <cstdio>
#include <map>
#include <optional>
#include <string>

#include "report/progress.h"
#include "support/json.h"

namespace pruner {

/// Writes events to a stream, flushed one by one. What cannot be written is an error at the end,
/// and the run's results are none the worse.
class RunEvents {
 public:
  RunEvents() = default;  // of no stream: nothing is written
  explicit RunEvents(std::FILE* out) : out_(out) {}

  /// {"event": name, "n": 0, 1, ..., "t_s": since the stream began} and the fields.
  void write(const char* name, const Json& fields);
  /// A round: "measured" or "failed" of each trial, "best" where the task's time fell, "round".
  void round(const RoundLine& line);
  Result<Unit> end() const;

 private:
  std::FILE* out_ = nullptr;  // not owned
  int64_t written_ = 0;
  bool failed_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::map<std::string, double> best_s_;  // by run and task
};

/// [{"task": 0, "name", "key", "weight"}, ...]: what "started" has of the tasks.
Json tasks_json(std::span<const WeightedTask> tasks);

}  // namespace pruner
