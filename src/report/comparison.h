// Compares the tuning curves of several modes, which show when each mode reached a latency: a
// table, TSV, a plot, JSON. The other modes are measured by the first mode.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "support/json.h"
#include "support/result.h"
#include "tune/curve.h"

namespace pruner {

/// A latency counts as reached at kReachRatio x its value.
inline constexpr double kReachRatio = 1.01;

struct ComparedMode {
  std::string name, update;  // "moa-pruner", "momentum"
};

struct Comparison {
  std::string subject;  // "resnet_50, 1000 trials"
  std::string device;   // fingerprint
  std::vector<ComparedMode> modes;
  std::vector<TuningCurve> curves;  // curves of the modes, with one or more seeds
  // Axis names in the plot.
  std::string latency_name = "estimated total latency (ms)";
  std::string seconds_name = "seconds of the mode's own search";

  const TuningCurve* curve(const std::string& mode, uint64_t seed) const;
};

/// `Reached` is the effort of a run until it reached a latency.
struct Reached {
  int64_t trials = 0;
  double seconds = 0;
  bool ever = false;  // false: trials and seconds are the run's whole budget
};
/// Returns the first point at or below kReachRatio x `latency_s`.
Reached reach(const TuningCurve& curve, double latency_s);

/// `Spread` holds the median over the seeds, the least and the greatest value.
struct Spread {
  double median = 0, least = 0, most = 0;
};
std::optional<Spread> spread(std::vector<double> values);  // nullopt if empty
/// Prints "12 (10 to 15)", or the median alone if all values are the same.
std::string print(const Spread& spread, int digits);
/// {"median","least","most"}, or null.
Json to_json(const std::optional<Spread>& spread);
/// Prints rows of cells, the first row being the heads, as a table in Markdown.
std::string print_table(const std::vector<std::vector<std::string>>& rows);

/// `Standing` compares a mode with the mode that is the measure, over the seeds.
struct Standing {
  int seeds = 0, reached = 0;  // reached: seeds that reached the measure's final latency
  std::optional<Spread> search_s, latency_s;
  std::optional<Spread> end_to_end_s;                      // seeds with a measured module
  std::optional<Spread> trials, seconds;                   // effort to the measure's final latency
  std::optional<Spread> trials_of_budget, time_of_budget;  // ... over the measure's whole search
  std::optional<Spread> trials_of_reach, time_of_reach;    // ... over the measure's own effort
};
/// Compares each mode, in order, with modes[measure], over the seeds that are complete, or over all
/// seeds if none is.
std::vector<Standing> standings(const Comparison& comparison, size_t measure = 0);

/// Prints the table: a column a mode, medians and spreads over the seeds. With one mode, the effort
/// to reach another is left out.
std::string print_comparison(const Comparison& comparison);
/// "mode\tseed\ttrials\tseconds\tlatency_ms": a line a point, and one at the end of each run.
std::string curves_tsv(const Comparison& comparison);
/// Plots the curves against trials and against seconds: a colour a mode, a line a seed. If the
/// worst latency is above three times the best, the scale is logarithmic above twice the best.
std::string curves_svg(const Comparison& comparison);
/// {"subject","device","modes":[{"mode","update","seeds","reached",Standing's spreads as
/// {"median","least","most"} or null}],"curves":[{"mode","seed","trials","search_s","complete",
/// "end_to_end_s","points":[[trials, seconds, latency_s]]}]}.
Json comparison_json(const Comparison& comparison);
/// Returns the curves of seeds that were complete when `saved` was made, to go on from. Errors:
/// `saved` has another subject, device or list of modes than `now`, or is no comparison.
Result<std::vector<TuningCurve>> complete_curves(const Json& saved, const Comparison& now);

}  // namespace pruner
