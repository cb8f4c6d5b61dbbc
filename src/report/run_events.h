// A run as a stream of events, for programs: one JSON object a line, written when it happens.
// docs/reference/cli.md has their fields.
#pragma once

#include <chrono>
#include <cstdio>
#include <map>
#include <optional>
#include <string>

#include "report/progress.h"
#include "support/json.h"

namespace pruner {

/// `RunEvents` writes events to a stream, flushed one by one. A failure to write is an error at the
/// end, and does not affect the run's results.
class RunEvents {
 public:
  RunEvents() = default;  // no stream: nothing is written
  explicit RunEvents(std::FILE* out) : out_(out) {}

  /// {"event": name, "n": 0, 1, ..., "t_s": since the stream began} and the fields.
  void write(const char* name, const Json& fields);
  /// Writes a round: "measured" or "failed" a trial, "best" if the task's time fell, and "round".
  void round(const RoundLine& line);
  Result<Unit> end() const;

 private:
  std::FILE* out_ = nullptr;  // not owned
  int64_t written_ = 0;
  bool failed_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::map<std::string, double> best_s_;  // best time by run and task
};

/// Returns the tasks in the event "started": [{"task": 0, "name", "key", "weight"}, ...].
Json tasks_json(std::span<const WeightedTask> tasks);

}  // namespace pruner
