// MetaSchedule's evolutionary search (Shao et al., NeurIPS 2022, section 4; constants and details
// of TVM's meta_schedule/search_strategy), in its part of our space. What may be measured is legal:
// a mutation that is not is tried again, and a slot of the population that finds none keeps a
// parent.
#include <algorithm>

#include "search/best_seen.h"
#include "search/roulette.h"
#include "search/search.h"
#include "space/metaschedule.h"
#include "support/check.h"

namespace pruner {

namespace {

constexpr size_t kLeastUnmeasured = 50;  // init_min_unmeasured
constexpr int kMostEmptyDraws = 5;       // max_fail_count: populations without a legal program
constexpr int kMostFailures = 10;        // genetic_max_fail_count, of a slot
constexpr int kMostEmptyRounds = 5;      // num_empty_iters_before_early_stop

class MetaScheduleRound {
 public:
  MetaScheduleRound(const SearchRequest& request, Rng& rng)
      : r_(request), size_(static_cast<size_t>(request.options.evolve.population)), rng_(rng) {}

  std::vector<Candidate> run() {
    std::vector<Candidate> population = measured();
    const std::vector<Candidate> unmeasured = draw_legal(size_ - population.size());
    if (unmeasured.size() < kLeastUnmeasured) return {};
    population.insert(population.end(), unmeasured.begin(), unmeasured.end());
    return pick(evolve(std::move(population)), unmeasured);
  }

 private:
  std::vector<Candidate> measured() const {
    const double most = r_.options.measured_share * r_.options.evolve.population;
    std::vector<Candidate> best;
    for (const Trial& trial : r_.history.best(static_cast<size_t>(most)))
      if (space_.contains(trial.candidate)) best.push_back(trial.candidate);
    return best;
  }

  bool is_program(const Candidate& c) const { return space_.contains(c) && is_legal(r_.space, c); }

  /// With duplicates, `count` draws at a time until there are enough.
  std::vector<Candidate> draw_legal(size_t count) {
    std::vector<Candidate> drawn;
    for (int empty = 0; drawn.size() < kLeastUnmeasured && empty < kMostEmptyDraws;) {
      const size_t before = drawn.size();
      for (size_t i = 0; i < count; ++i) {
        Candidate candidate = space_.draw(rng_);
        if (is_program(candidate)) drawn.push_back(std::move(candidate));
      }
      empty += drawn.size() == before;
    }
    return drawn;
  }

  /// The best that some generations see for the first time.
  std::vector<Scored> evolve(std::vector<Candidate> population) {
    CandidateSet seen = r_.history.tried();
    BestSeen best(r_.count, r_.history.tried());
    for (int generation = 0;; ++generation) {
      std::vector<float> scores = r_.models.verify->predict(r_.task, r_.space, population);
      if (scores.empty()) scores.assign(population.size(), 1);  // it orders nothing
      for (size_t i = 0; i < population.size(); ++i)
        if (seen.insert(population[i]).second) best.add(population[i], std::max(scores[i], 0.0f));
      if (generation == r_.options.verify_generations) return best.take();
      population = next_generation(population, Roulette(scores));
    }
  }

  std::vector<Candidate> next_generation(const std::vector<Candidate>& population,
                                         const Roulette& parents) {
    std::vector<Candidate> next;
    std::vector<bool> copied(population.size());  // a parent goes on unchanged once
    while (next.size() < size_) {
      size_t parent = 0;
      std::optional<Candidate> child;
      for (int failures = 0; failures <= kMostFailures && !child; ++failures) {
        parent = parents.spin(rng_);
        if (rng_.uniform() < r_.options.evolve.mutate_probability) {
          child = space_.mutate(population[parent], rng_);
          if (child && !is_program(*child)) child.reset();
        } else if (!copied[parent]) {
          copied[parent] = true;
          break;
        }
      }
      next.push_back(child ? *std::move(child) : population[parent]);
    }
    return next;
  }

  /// Picks the best candidates, and at the end random ones. Each list helps out if the other ends.
  /// A place of the batch that falls to a tried candidate stays empty.
  std::vector<Candidate> pick(const std::vector<Scored>& bests, std::vector<Candidate> unmeasured) {
    for (size_t i = unmeasured.size(); i > 1; --i)
      std::swap(unmeasured[i - 1], unmeasured[rng_.below(static_cast<int64_t>(i))]);
    const auto num_random =
        static_cast<size_t>(r_.options.eps_greedy * static_cast<double>(r_.count));
    CandidateSet tried = r_.history.tried();
    std::vector<Candidate> picked;
    for (size_t i = 0, best = 0, random = 0; i < r_.count; ++i) {
      const bool has_best = best < bests.size(), has_random = random < unmeasured.size();
      if (!has_best && !has_random) break;
      const bool wants_best = i < r_.count - num_random;
      const Candidate& next =
          has_best && (wants_best || !has_random) ? bests[best++].candidate : unmeasured[random++];
      if (tried.insert(next).second) picked.push_back(next);
    }
    return picked;
  }

  const SearchRequest& r_;
  const MetaScheduleSpace space_{r_.space};
  const size_t size_;
  Rng& rng_;
};

/// Puts the schedule that needs no search in front of a task's first batch: the best by draft score
/// in MetaSchedule's part of the space.
void begin_with_default(const SearchRequest& request, std::vector<Candidate>& batch) {
  const MetaScheduleSpace space(request.space);
  const std::optional<Candidate> first = default_schedule_of(
      request.task, request.space, [&](const Candidate& c) { return space.contains(c); });
  if (!first) return;
  std::erase(batch, *first);
  batch.insert(batch.begin(), *first);
  batch.resize(std::min(batch.size(), request.count));
}

std::vector<Candidate> next_batch(const SearchRequest& request, Rng& rng) {
  CHECK(request.models.verify != nullptr) << "MetaSchedule's policy asks a model";
  std::vector<Candidate> batch;
  for (int round = 0; round < kMostEmptyRounds && batch.empty(); ++round)
    batch = MetaScheduleRound(request, rng).run();
  if (request.history.empty() && request.options.ingredients.has(Ingredient::kDefaultSchedule))
    begin_with_default(request, batch);
  return batch;
}

}  // namespace

const SearchPolicy kMetaSchedulePolicy = {
    .name = "metaschedule",
    .next_batch = next_batch,
    .constants = kPopulation | kVerifyGenerations | kEpsGreedy,
    .takes = {Ingredient::kDefaultSchedule},
    .options = {.eps_greedy = 0.05,
                .random_samples = 512,
                .verify_generations = 4,
                .measured_share = 0.2,
                .round_size = 64,
                .evolve = {.population = 512, .mutate_probability = 0.85},
                .ingredients = {}}};

}  // namespace pruner
