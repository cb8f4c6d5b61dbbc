// Compares the tuning curves of several modes, which show when each mode reached a latency: a
// table, TSV, a plot, JSON. The other modes are measured by the first mode.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "report/statistics.h"
#include "support/json.h"
#include "support/result.h"
#include "tune/curve.h"

namespace pruner {

/// A latency counts as reached at kReachRatio x its value.
inline constexpr double kReachRatio = 1.01;

/// A conclusion needs runs with this number of seeds or more.
inline constexpr int kLeastSeeds = 5;
inline constexpr const char* kTooFewSeeds = "No conclusion, since the seeds are too few";
/// `kHowShown` explains the numbers of a conclusion.
inline constexpr const char* kHowShown =
    "Each number is the median of the ratios with its 95 % bootstrap interval; p is that of the "
    "Wilcoxon signed-rank test. Below 1 the mode needs less.\n";

struct ComparedMode {
  std::string name, update;      // "moa-pruner", "momentum"
  std::string ingredients = {};  // names with commas, or "none"; empty: not known

  bool published() const { return ingredients == "none"; }
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

/// `Reached` is the effort of a run until it reached a latency; infinity if it never did.
struct Reached {
  double trials = 0, seconds = 0;

  bool ever() const;
};
/// Returns the effort to the first point at or below kReachRatio x `latency_s`.
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

/// `PairedRatio` is the ratio of a mode's runs to the measure's, seed by seed.
struct PairedRatio {
  Estimate ratio;
  double p = 1;  // signed_rank_p() of the seeds
};

/// `Standing` compares a mode with the mode that is the measure, over the seeds. Efforts are those
/// to the measure's final latency.
struct Standing {
  int seeds = 0, reached = 0;  // reached: seeds that reached the measure's final latency
  std::optional<Estimate> search_s, latency_s;
  std::optional<Estimate> end_to_end_s;                       // seeds with a measured module
  std::optional<Estimate> trials, seconds;                    // efforts
  std::optional<Estimate> trials_of_budget, time_of_budget;   // over the measure's whole search
  std::optional<PairedRatio> trials_of_reach, time_of_reach;  // over the measure's own effort
  std::optional<PairedRatio> latency_of_measure, end_to_end_of_measure;  // at the end
};
/// Compares each mode, in order, with modes[measure], over the seeds that are complete, or over all
/// seeds if none is.
std::vector<Standing> standings(const Comparison& comparison, size_t measure = 0);

/// `kPartTitles` names the two parts of a comparison.
inline constexpr const char* kPartTitles[] = {"as published", "with ingredients"};
/// Returns the comparisons whose tables stand below one another. If there are two or more published
/// modes and others, the first part has the published modes, and the second part has the first mode
/// and the modes with ingredients. Otherwise there is one part.
std::vector<Comparison> parts_of(const Comparison& comparison);

/// Prints the table: a column a mode, medians and intervals over the seeds. With one mode, the
/// effort to reach another is left out. Each part has a table.
std::string print_comparison(const Comparison& comparison);
/// Prints "0.13 (0.08 to 0.20), p = 0.062"; if the interval holds 1, the text says that there is no
/// difference that these runs can show.
std::string print(const std::optional<PairedRatio>& paired, int digits);
/// {"median","low","high","p"}, or null.
Json to_json(const std::optional<PairedRatio>& paired);
/// Prints a line a mode: its name and its ingredients.
std::string print_ingredients(std::span<const ComparedMode> modes);
/// Prints what the runs can show: the ingredients of each mode, and each mode's efforts and final
/// latency over those of the first mode, or that the seeds are too few.
std::string print_conclusions(const Comparison& comparison);
/// "mode\tseed\ttrials\tseconds\tlatency_ms": a line a point, and one at the end of each run.
std::string curves_tsv(const Comparison& comparison);
/// Plots the median over the seeds against trials and against seconds, with the band of its 95 %
/// interval: a colour a mode. If the worst latency is above three times the best, the scale is
/// logarithmic above twice the best.
std::string curves_svg(const Comparison& comparison);
/// {"subject","device","modes":[{"mode","update","ingredients","seeds","reached",Standing's
/// estimates as {"median","low","high"} or null, ratios with
/// "p"}],"curves":[{"mode","seed","trials","search_s","complete", "end_to_end_s","points":[[trials,
/// seconds, latency_s]]}]}.
Json comparison_json(const Comparison& comparison);
/// Returns the curves of seeds that were complete when `saved` was made, to go on from. Errors:
/// `saved` has another subject, device or list of modes than `now`, or is no comparison.
Result<std::vector<TuningCurve>> complete_curves(const Json& saved, const Comparison& now);

}  // namespace pruner
