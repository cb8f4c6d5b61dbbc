// The same modes compared on several networks -> who is how fast on which, and what each needs to
// reach what the others ended with: tables, TSV, JSON and the paper's two bar plots.
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
using ComparisonSet = std::vector<ComparedNetwork>;  // of the same modes

/// The least latency of any mode over a mode's own, medians over the seeds: 1 is the fastest.
struct Performance {
  bool end_to_end = false;  // of modules; else of the estimates, as not every module was measured
  std::vector<std::vector<std::optional<double>>> of;  // [mode][network]; nullopt: no valid trial
  std::vector<std::optional<double>> geomean;          // [mode], over networks where all have one
};
Performance performance(const ComparisonSet& set);

/// A table of performance, and of each mode one of the seconds that the others need to its final
/// latency. "" of no network.
std::string print_comparison_set(const ComparisonSet& set);
/// "network\tmode\tseeds\tsearch_s\testimated_ms\tend_to_end_ms\tperformance".
std::string performance_tsv(const ComparisonSet& set);
/// "network\tmode\tto\tseeds\treached\ttrials\tseconds\tspeedup": speedup is the whole search time
/// of `to` by the seconds; "-" where half of the seeds or more do not get there.
std::string search_time_tsv(const ComparisonSet& set);
/// Normalised performance of each network, and the geometric mean.
std::string performance_svg(const ComparisonSet& set);
/// A chart a mode: its whole search time, and what each other mode takes to its final latency;
/// no bar where half of the seeds or more do not get there.
std::string search_time_svg(const ComparisonSet& set);
/// {"end_to_end","modes","networks":[{"network","subject","device","modes":[{"mode","update","seeds",
/// "search_s","latency_s","end_to_end_s","performance","to":[{"mode","reached","trials","seconds",
/// "speedup"}]}]}],"geomean":[{"mode","performance","to":[{"mode","networks_reached","speedup"}]}]}.
Json comparison_set_json(const ComparisonSet& set);

}  // namespace pruner
