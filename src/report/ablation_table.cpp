#include "report/ablation_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace pruner {

namespace {

/// Ratios of one quantity, by operator.
using Groups = std::vector<std::vector<double>>;

/// Holds the curves of one seed: two modes that differ in one part, and the first mode.
struct PairedRuns {
  const TuningCurve *with, *without, *reference;
};

/// Returns the runs of a pair on one operator whose seed is complete and has a latency to reach.
std::vector<PairedRuns> paired_runs(const Comparison& comparison, const AblatedPair& pair) {
  std::vector<PairedRuns> found;
  for (const TuningCurve& reference : comparison.curves) {
    if (reference.mode != comparison.modes.front().name) continue;
    const TuningCurve* with = comparison.curve(pair.with, reference.seed);
    const TuningCurve* without = comparison.curve(pair.without, reference.seed);
    if (reference.complete && reference.final_s() && with != nullptr && without != nullptr)
      found.push_back({with, without, &reference});
  }
  return found;
}

PartWorth worth(const ComparisonSet& set, const AblatedPair& pair) {
  PartWorth worth;
  Groups trials, seconds, latency;
  for (const ComparedNetwork& network : set) {
    std::vector<double>& of_trials = trials.emplace_back();
    std::vector<double>& of_seconds = seconds.emplace_back();
    std::vector<double>& of_latency = latency.emplace_back();
    for (const auto& [with, without, reference] : paired_runs(network.comparison, pair)) {
      const Reached reached = reach(*with, *reference->final_s());
      const Reached before = reach(*without, *reference->final_s());
      of_trials.push_back(paired_ratio(reached.trials, before.trials));
      of_seconds.push_back(paired_ratio(reached.seconds, before.seconds));
      if (with->final_s() && without->final_s())
        of_latency.push_back(*with->final_s() / *without->final_s());
      ++worth.runs;
    }
  }
  worth.trials = estimate_median(trials);
  worth.seconds = estimate_median(seconds);
  worth.latency = estimate_median(latency);
  return worth;
}

/// Prints a ratio; `concludes` says whether the seeds suffice for a conclusion.
std::string cell(const std::optional<Estimate>& ratio, int digits, bool concludes) {
  if (!ratio) return "-";
  return print(*ratio, digits) + (concludes && ratio->holds(1) ? ": no difference shown" : "");
}

/// Returns the least number of complete seeds of any operator.
int least_seeds(const ComparisonSet& set) {
  int least = 0;
  for (const ComparedNetwork& network : set) {
    const int seeds = standings(network.comparison).front().seeds;
    least = least == 0 ? seeds : std::min(least, seeds);
  }
  return least;
}

}  // namespace

std::vector<PartWorth> part_worth(const ComparisonSet& set, std::span<const AblatedPair> pairs) {
  std::vector<PartWorth> all;
  for (const AblatedPair& pair : pairs) all.push_back(worth(set, pair));
  return all;
}

std::string print_ablation(const ComparisonSet& set, std::span<const AblatedPair> pairs) {
  if (set.empty()) return "";
  const std::string& reference = set.front().comparison.modes.front().name;
  const int seeds = least_seeds(set);
  std::vector<std::vector<std::string>> rows = {
      {fmt::format("with / without ({} operators; seeds: {})", set.size(), seeds),
       fmt::format("trials to {}'s latency", reference),
       "seconds to it",
       "final latency"}};
  const std::vector<PartWorth> all = part_worth(set, pairs);
  const bool concludes = seeds >= kLeastSeeds;
  for (size_t i = 0; i < pairs.size(); ++i)
    rows.push_back({pairs[i].part,
                    cell(all[i].trials, 2, concludes),
                    cell(all[i].seconds, 2, concludes),
                    cell(all[i].latency, 3, concludes)});
  const std::string table = print_table(rows);
  if (!concludes)
    return table + fmt::format("{}: {} of {} seeds.\n", kTooFewSeeds, seeds, kLeastSeeds);
  return table +
         "Each number is the median of the ratios over operators and seeds with its 95 % bootstrap "
         "interval.\nBelow 1 the part helps. \"no difference shown\": no difference that "
         "these "
         "runs can show.\n";
}

std::string ablation_tsv(const ComparisonSet& set, std::span<const AblatedPair> pairs) {
  std::string tsv = "part\twith\twithout\truns";
  for (const char* quantity : {"trials", "seconds", "latency"})
    tsv += fmt::format("\t{0}_median\t{0}_low\t{0}_high", quantity);
  tsv += "\n";
  const std::vector<PartWorth> all = part_worth(set, pairs);
  for (size_t i = 0; i < pairs.size(); ++i) {
    tsv +=
        fmt::format("{}\t{}\t{}\t{}", pairs[i].part, pairs[i].with, pairs[i].without, all[i].runs);
    for (const std::optional<Estimate>& e : {all[i].trials, all[i].seconds, all[i].latency})
      tsv += e ? fmt::format("\t{:.6g}\t{:.6g}\t{:.6g}", e->median, e->low, e->high) : "\t-\t-\t-";
    tsv += "\n";
  }
  return tsv;
}

Json ablation_json(const ComparisonSet& set, std::span<const AblatedPair> pairs) {
  Json rows = Json::array();
  const std::vector<PartWorth> all = part_worth(set, pairs);
  for (size_t i = 0; i < pairs.size(); ++i)
    rows.push_back({{"part", pairs[i].part},
                    {"with", pairs[i].with},
                    {"without", pairs[i].without},
                    {"runs", all[i].runs},
                    {"trials", to_json(all[i].trials)},
                    {"seconds", to_json(all[i].seconds)},
                    {"latency", to_json(all[i].latency)}});
  return rows;
}

}  // namespace pruner
