#include "report/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace pruner {

namespace {

double first_s(const Trace& trace) {
  double least = 0;
  for (const TraceSpan& span : trace.spans)
    least = &span == trace.spans.data() ? span.time.from_s : std::min(least, span.time.from_s);
  return least;
}

Json name_event(const char* what, size_t track, const std::string& name) {
  return {{"ph", "M"}, {"pid", 1}, {"tid", track}, {"name", what}, {"args", {{"name", name}}}};
}

/// Whole nanoseconds: what ends where another begins does so in the file, too.
double microseconds(double seconds) { return std::round(seconds * 1e9) / 1e3; }

/// The first lane in which nothing is at that time, or a new one.
template <typename Span>
std::vector<Span>& lane_of(const TimeSpan& time, std::vector<std::vector<Span>>& lanes) {
  for (std::vector<Span>& lane : lanes) {
    const bool free = std::ranges::all_of(lane, [&](const Span& span) {
      return span.time.to_s <= time.from_s || time.to_s <= span.time.from_s;
    });
    if (free) return lane;
  }
  return lanes.emplace_back();
}

}  // namespace

Json trace_json(const Trace& trace) {
  Json events = Json::array();
  events.push_back(name_event("process_name", 0, trace.process));
  for (size_t t = 0; t < trace.tracks.size(); ++t) {
    events.push_back(name_event("thread_name", t + 1, trace.tracks[t]));
    Json order = name_event("thread_sort_index", t + 1, "");
    order["args"] = {{"sort_index", t}};
    events.push_back(std::move(order));
  }
  const double begin_s = first_s(trace);
  for (const TraceSpan& span : trace.spans) {
    const double from = microseconds(span.time.from_s - begin_s);
    events.push_back({{"ph", "X"},
                      {"pid", 1},
                      {"tid", span.track + 1},
                      {"name", span.name},
                      {"cat", span.category},
                      {"ts", from},
                      {"dur", microseconds(span.time.to_s - begin_s) - from},
                      {"args", span.args}});
  }
  return {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}};
}

Trace trace_run(const TracedRun& run, const std::string& module, int threads) {
  Trace trace{"pruner: " + module, {"run"}, {}};
  double kernels_s = 0;
  for (const KernelTime& kernel : run.kernels) kernels_s += kernel.median_ms / 1e3;
  const double run_s = std::max(run.run_s, kernels_s);
  trace.spans.push_back({"run",
                         "run",
                         0,
                         {0, run_s},
                         {{"threads", threads},
                          {"kernels", run.kernels.size()},
                          {"outside_kernels_ms", (run_s - kernels_s) * 1e3}}});
  double at_s = 0;
  for (const KernelTime& kernel : run.kernels) {
    const double seconds = kernel.median_ms / 1e3;
    trace.spans.push_back({kernel.name,
                           "kernel",
                           0,
                           {at_s, at_s + seconds},
                           {{"sketch", kernel.sketch},
                            {"precision", kernel.precision},
                            {"threads", threads},
                            {"flops", kernel.flops},
                            {"bytes", kernel.bytes}}});
    at_s += seconds;
  }
  return trace;
}

void TuneTrace::add(const Tuner& tuner, const RoundSummary& summary) {
  const Task& task = tuner.tasks()[summary.task].task->task;
  const Json round = {{"task", summary.task},
                      {"name", task.name},
                      {"round", summary.round},
                      {"final", summary.final}};
  if (summary.exploring.from_s > 0) searching_.push_back({"explore", summary.exploring, round});
  if (summary.training.from_s > 0) searching_.push_back({"train", summary.training, round});
  Json measured = round;
  measured.update({{"ok", summary.ok},
                   {"failed", summary.failed},
                   {"build_s", summary.build_s},
                   {"measure_s", summary.measure_s}});
  if (summary.measuring.from_s > 0)
    lane_of(summary.measuring, measuring_)
        .push_back({summary.final ? "measure again" : "measure", summary.measuring, measured});
  for (size_t i = 0; i < summary.trial_times.size(); ++i) add_trial(summary, i, round);
}

void TuneTrace::add_trial(const RoundSummary& summary, size_t number, const Json& round) {
  const double cost_s = summary.samples[number].cost_s;
  Json args = round;
  args["trial"] = trials_++;
  args["latency_ms"] = cost_s < kWorstCost ? Json(cost_s * 1e3) : Json();
  const auto add = [&](const char* what, const WorkSpan& span, auto& workers) {
    if (span.worker < 0) return;
    const auto worker = static_cast<size_t>(span.worker);
    workers.resize(std::max(workers.size(), worker + 1));
    workers[worker].push_back({what, span.time, args});
  };
  add("build", summary.trial_times[number].building, building_);
  add("run", summary.trial_times[number].running, running_);
}

Trace TuneTrace::trace() const {
  Trace trace{"pruner tune", {}, {}};
  const auto add = [&](const std::string& track, const char* category, const auto& spans) {
    for (const Span& span : spans)
      trace.spans.push_back({span.name, category, trace.tracks.size(), span.time, span.args});
    trace.tracks.push_back(track);
  };
  add("search", "search", searching_);
  for (size_t i = 0; i < measuring_.size(); ++i)
    add(i == 0 ? "measured" : fmt::format("measured, too ({})", i), "measure", measuring_[i]);
  for (size_t i = 0; i < building_.size(); ++i)
    add(fmt::format("builder {}", i), "trial", building_[i]);
  for (size_t i = 0; i < running_.size(); ++i)
    add(fmt::format("runner {}", i), "trial", running_[i]);
  return trace;
}

}  // namespace pruner
