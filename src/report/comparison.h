// Tuning curves of several modes -> who reached what, when: a table, TSV, a plot, JSON. The first
// mode is the one that the others are measured by.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "support/json.h"
#include "support/result.h"
#include "tune/curve.h"

namespace pruner {

/// A latency counts as reached at this x its value.
inline constexpr double kReachRatio = 1.01;

struct ComparedMode {
  std::string name, update;  // "moa-pruner", "momentum"
};

struct Comparison {
  std::string subject;  // "resnet_50, 1000 trials"
  std::string device;   // fingerprint
  std::vector<ComparedMode> modes;
  std::vector<TuningCurve> curves;  // of the modes, with one or more seeds
  // What the plot calls them.
  std::string latency_name = "estimated total latency (ms)";
  std::string seconds_name = "seconds of the mode's own search";

  const TuningCurve* curve(const std::string& mode, uint64_t seed) const;
};

/// Where a run was at a latency.
struct Reached {
  int64_t trials = 0;
  double seconds = 0;
  bool ever = false;  // else the run's whole budget
};
/// The first point at or below kReachRatio x `latency_s`.
Reached reach(const TuningCurve& curve, double latency_s);

/// The median over the seeds, the least and the most.
struct Spread {
  double median = 0, least = 0, most = 0;
};
std::optional<Spread> spread(std::vector<double> values);  // nullopt of none
/// "12 (10 to 15)"; the median alone where all are the same.
std::string print(const Spread& spread, int digits);
/// {"median","least","most"}, or null.
Json to_json(const std::optional<Spread>& spread);
/// Rows of cells, the first of them the heads, as a table in Markdown.
std::string print_table(const std::vector<std::vector<std::string>>& rows);

/// A mode beside the one that is the measure, over the seeds.
struct Standing {
  int seeds = 0, reached = 0;  // reached: seeds in which the measure's final latency was
  std::optional<Spread> search_s, latency_s;
  std::optional<Spread> end_to_end_s;                      // where modules were measured
  std::optional<Spread> trials, seconds;                   // to the measure's final latency
  std::optional<Spread> trials_of_budget, time_of_budget;  // ... as a share of all it took
  std::optional<Spread> trials_of_reach, time_of_reach;    // ... of what its own first reach took
};
/// In the order of the modes, beside modes[measure]; of the seeds that are complete, or all when
/// none is.
std::vector<Standing> standings(const Comparison& comparison, size_t measure = 0);

/// The table: a column a mode, medians and spreads over the seeds. Of one mode: without what it
/// needs to reach another.
std::string print_comparison(const Comparison& comparison);
/// "mode\tseed\ttrials\tseconds\tlatency_ms": a line a point, and one at the end of each run.
std::string curves_tsv(const Comparison& comparison);
/// The curves against trials and against seconds: a colour a mode, a line a seed. Where the worst
/// latency is above three times the best, the scale is logarithmic above twice the best.
std::string curves_svg(const Comparison& comparison);
/// {"subject","device","modes":[{"mode","update","seeds","reached",Standing's spreads as
/// {"median","least","most"} or null}],"curves":[{"mode","seed","trials","search_s","complete",
/// "end_to_end_s","points":[[trials, seconds, latency_s]]}]}.
Json comparison_json(const Comparison& comparison);
/// The curves of seeds that were complete when this JSON was made, to go on from. Errors: it is of
/// another subject, device or list of modes than `now`, or no such JSON.
Result<std::vector<TuningCurve>> complete_curves(const Json& saved, const Comparison& now);

}  // namespace pruner
