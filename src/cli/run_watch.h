// Reports on a run while it goes and at its end: to people on standard error, to programs by
// --events and --json.
#pragma once

#include <memory>
#include <string>

#include "cli/options.h"
#include "report/live_view.h"
#include "report/run_events.h"

namespace pruner {

/// --events.
struct EventOptions {
  std::string file;  // "-": standard output; empty: none

  void add_to(CLI::App& app);
};

/// Shows a run and writes its events.
class RunWatch {
 public:
  /// Errors: the file cannot be written.
  static Result<std::unique_ptr<RunWatch>> open(const EventOptions& options,
                                                const Invocation& call);

  /// Whether standard output is a program's: it gets one JSON value, or events.
  bool json() const { return json_; }
  /// Reports the tasks, before their tuning begins.
  void started(const Json& facts, std::span<const WeightedTask> tasks);
  /// Reports the current phase: `doing` is the text for people, `name` the name in events.
  void phase(const char* name, const std::string& doing);
  void round(const RoundLine& line);
  /// Ends the live view; its lines stay on the screen.
  void pause() { view_.finish(); }
  /// The end: the value of --json, on standard output or as the last event.
  Result<Unit> done(const Json& result);

 private:
  RunWatch(const Invocation& call, std::FILE* file, bool to_output);

  LiveView view_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;  // null: none of its own
  RunEvents events_;
  bool json_, to_output_;
};

}  // namespace pruner
