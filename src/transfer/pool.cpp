#include "transfer/pool.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/draft.h"
#include "search/search.h"
#include "support/check.h"
#include "transfer/adapt.h"
#include "transfer/kernel_class.h"
#include "transfer/nearest.h"

namespace pruner {

int64_t TransferSource::count(const std::string& kernel_class) const {
  return std::ranges::count_if(
      best, [&](const Record& r) { return pruner::kernel_class(r.task_name) == kernel_class; });
}

TransferSource make_source(std::string name,
                           const std::vector<Record>& records,
                           const std::string& device) {
  TransferSource source{std::move(name), {}};
  std::vector<std::string> devices;
  for (const Record& record : records) {
    const bool of_it = device.empty() || record.device == device;
    if (of_it && std::ranges::find(devices, record.device) == devices.end())
      devices.push_back(record.device);
  }
  for (const std::string& of : devices) {
    for (auto& [key, record] : best_records(records, of)) source.best.push_back(record);
  }
  return source;
}

Offers offers_for(std::span<const TransferSource> sources, const Task& task, const Space& space) {
  const std::string of = kernel_class(task.name);
  Offers found;
  found.untuned = default_schedule(task, space);
  const auto offer = [&](const Record& record, size_t source) {
    const Result<Candidate> adapted = adapt(record, space, found.untuned);
    if (!adapted.ok()) {
      ++found.not_adaptable[adapted.error().message()];
    } else if (std::ranges::find(found.offers, *adapted, &Offer::candidate) == found.offers.end()) {
      found.offers.push_back({*adapted, source, record.task_name});
    }
  };
  for (const bool same_class : {true, false}) {
    for (size_t s = 0; s < sources.size(); ++s) {
      for (const Record& record : sources[s].best) {
        const std::string gives = kernel_class(record.task_name);
        if (same_class ? gives == of
                       : gives != of && anchor_of(record.task_name) == anchor_of(task.name))
          offer(record, s);
      }
    }
  }
  return found;
}

static double gift(const TransferSource& source, const Task& task, SourceRule rule) {
  if (rule == SourceRule::kPublished)
    return std::sqrt(static_cast<double>(source.count(kernel_class(task.name))));
  double most = 0;
  for (const Record& record : source.best)
    if (anchor_of(record.task_name) == anchor_of(task.name))
      most = std::max(most, std::exp(-shape_distance(task, record.workload_key)));
  return most;
}

size_t best_source(std::span<const TransferSource> sources,
                   std::span<const WeightedTask> tasks,
                   SourceRule rule) {
  CHECK(!sources.empty());
  std::vector<double> scores(sources.size());
  for (const auto& [task, weight] : tasks) {
    const Space space = make_space(task);
    const LoopNest nest = make_loop_nest(space, default_schedule(task, space));
    const double spent_s = static_cast<double>(weight) * draft_latency_s(nest, task.target);
    for (size_t s = 0; s < sources.size(); ++s) scores[s] += spent_s * gift(sources[s], task, rule);
  }
  return static_cast<size_t>(std::ranges::max_element(scores) - scores.begin());
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

static constexpr int64_t kWarmFirstRound = 4;  // the default, two offers, a draft

void start_warm(TuneOptions& options, std::span<const TransferSource> pool, CostModel& model) {
  options.first_round_size = kWarmFirstRound;
  options.offers = [pool, &model, most = options.search.round_size](const Task& task,
                                                                    const Space& space) {
    return ranked_offers(offers_for(pool, task, space), task, space, model, most);
  };
}

}  // namespace pruner
