// Turns spans of time into Chrome's trace events, which Perfetto (ui.perfetto.dev) and
// chrome://tracing open. Spans of one track lie within each other or apart.
#pragma once

#include <string>
#include <vector>

#include "deploy/loaded_module.h"
#include "support/clock.h"
#include "support/json.h"
#include "tune/tune.h"

namespace pruner {

struct TraceSpan {
  std::string name, category;
  size_t track = 0;
  TimeSpan time;
  Json args = Json::object();
};

struct Trace {
  std::string process;
  std::vector<std::string> tracks;  // names of the tracks, top to bottom
  std::vector<TraceSpan> spans;
};

/// {"traceEvents":[...],"displayTimeUnit":"ms"}: an "M" event for each name, an "X" event a span,
/// in microseconds since the first one began.
Json trace_json(const Trace& trace);

/// Traces a run of a module: the run, and in it its kernels. Each kernel begins at the end of the
/// kernel before it.
Trace trace_run(const TracedRun& run, const std::string& module, int threads);

/// `TuneTrace` collects the rounds of a tuning run as the rounds end: the search, the measuring
/// meanwhile, and the work of each builder and runner.
class TuneTrace {
 public:
  void add(const Tuner& tuner, const RoundSummary& summary);
  Trace trace() const;

 private:
  void add_trial(const RoundSummary& summary, size_t number, const Json& round);

  struct Span {
    std::string name;
    TimeSpan time;
    Json args;
  };
  // Spans of each builder, and of each runner.
  std::vector<std::vector<Span>> building_, running_;
  std::vector<Span> searching_;
  std::vector<std::vector<Span>> measuring_;  // several if rounds are measured at the same time
  int64_t trials_ = 0;                        // trials of all rounds
};

}  // namespace pruner
