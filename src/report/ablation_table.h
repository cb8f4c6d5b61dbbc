// The worth of the parts of a mode: pairs of modes that differ in one part, an ingredient or a part
// of the published search, over several operators and seeds -> a table, TSV, JSON.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "report/comparison_set.h"

namespace pruner {

/// Names of two modes that differ in one part.
struct AblatedPair {
  std::string part, with, without;
};

/// `PartWorth` holds the ratios of the mode with the ingredient to the mode without it, run
/// by run. Efforts are those to the final latency that the first mode has with the same seed.
struct PartWorth {
  int runs = 0;
  std::optional<Estimate> trials, seconds, latency;
};

/// Returns the worth of each part, in the order of `pairs`, over the complete seeds of all
/// operators. The intervals are those of a two-level bootstrap over operators and seeds.
std::vector<PartWorth> part_worth(const ComparisonSet& set, std::span<const AblatedPair> pairs);

/// Prints a row for each part, or that the seeds are too few.
std::string print_ablation(const ComparisonSet& set, std::span<const AblatedPair> pairs);
/// "part\twith\twithout\truns", and median, low and high of trials, seconds and latency.
std::string ablation_tsv(const ComparisonSet& set, std::span<const AblatedPair> pairs);
/// [{"part","with","without","runs","trials","seconds","latency"}], the last three as
/// {"median","low","high"} or null.
Json ablation_json(const ComparisonSet& set, std::span<const AblatedPair> pairs);

}  // namespace pruner
