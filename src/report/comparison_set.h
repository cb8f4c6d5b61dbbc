// Compares the same modes on several networks: each mode's performance, and its effort to reach the
// other modes' final latencies. The forms are tables, TSV, JSON and the paper's two bar plots.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/comparison.h"

namespace pruner {

/// Only networks with a complete seed belong here.
struct ComparedNetwork {
  std::string name;
  Comparison comparison;
};
using ComparisonSet = std::vector<ComparedNetwork>;  // all have the same modes

/// `Performance` is any mode's least latency over a mode's own, medians over seeds: 1 is fastest.
struct Performance {
  bool end_to_end = false;  // module latencies; else estimates, as a module was not measured
  std::vector<std::vector<std::optional<double>>> of;  // [mode][network]; nullopt: no valid trial
  std::vector<std::optional<double>> geomean;          // [mode], over networks where all have one
};
Performance performance(const ComparisonSet& set);

/// Prints a table of performance, and for each mode a table of the others' seconds to its final
/// latency; each part of the comparisons (parts_of()) has such tables. Without a network, the text
/// is empty.
std::string print_comparison_set(const ComparisonSet& set);
/// Prints the ingredients of each mode, and a row for each network and mode: the mode's efforts and
/// final latency over those of the first mode, or that the seeds are too few.
std::string print_conclusions(const ComparisonSet& set);
/// "network\tmode\tseeds\tsearch_s\testimated_ms\tend_to_end_ms\tperformance".
std::string performance_tsv(const ComparisonSet& set);
/// "network\tmode\tto\tseeds\treached\ttrials\tseconds\tspeedup": speedup is `to`'s whole search
/// time over the seconds; "-" if half of the seeds or more do not reach the latency.
std::string search_time_tsv(const ComparisonSet& set);
/// Plots the normalised performance on each network, and the geometric mean.
std::string performance_svg(const ComparisonSet& set);
/// Plots a chart a mode: its whole search time, and each other mode's time to its final latency. A
/// bar is left out if half of the seeds or more do not reach the latency.
std::string search_time_svg(const ComparisonSet& set);
/// {"end_to_end","modes","networks":[{"network","subject","device","modes":[{"mode","update",
/// "ingredients","seeds","search_s","latency_s","end_to_end_s","trials_of_reach","time_of_reach",
/// "latency_of_measure","performance","to":[{"mode","reached","trials","seconds",
/// "speedup"}]}]}],"geomean":[{"mode","performance","to":[{"mode","networks_reached","speedup"}]}]}.
Json comparison_set_json(const ComparisonSet& set);

}  // namespace pruner
