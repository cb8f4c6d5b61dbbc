#include "cli/pool.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "cli/record_files.h"

namespace pruner {

Result<std::vector<TransferSource>> read_pool(const Options& options,
                                              std::span<const WeightedTask> tasks) {
  TRY_ASSIGN(const std::vector<FileRecords> files,
             read_record_files(options.pool, "--pool", job_count(options)));
  std::vector<TransferSource> sources;
  for (const FileRecords& file : files) {
    TransferSource source = make_source(file.path, file.records, "");
    if (!source.best.empty()) sources.push_back(std::move(source));
  }
  if (sources.empty())
    return Error("--pool: no usable record of ours in ",
                 fmt::format("{}", fmt::join(options.pool, ", ")));
  if (options.source.empty()) return sources;
  size_t chosen = 0;
  if (options.source == "auto" || options.source == "as-published") {
    const bool published = options.source == "as-published";
    chosen =
        best_source(sources, tasks, published ? SourceRule::kPublished : SourceRule::kLikeness);
  } else {
    const auto found = std::ranges::find(sources, options.source, &TransferSource::name);
    if (found == sources.end())
      return Error(
          "--source: ", options.source, " is not auto or as-published, nor a file of --pool");
    chosen = static_cast<size_t>(found - sources.begin());
  }
  return std::vector<TransferSource>{sources[chosen]};
}

std::vector<Candidate> ranked_offers(
    const Offers& offers, const Task& task, const Space& space, CostModel& model, int64_t most) {
  std::vector<Candidate> candidates;
  for (const Offer& offer : offers.offers) candidates.push_back(offer.candidate);
  const std::vector<float> scores = model.predict(task, space, candidates);
  std::vector<size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (!scores.empty())
    std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return scores[i]; });
  if (most > 0) order.resize(std::min(order.size(), static_cast<size_t>(most)));
  std::vector<Candidate> ranked;
  for (const size_t i : order) ranked.push_back(candidates[i]);
  return ranked;
}

}  // namespace pruner
