// The searches as their papers and releases have them, on our space: Pruner's explorer (section
// 4.1) and Ansor's evolution (section 5). Populations have duplicates, parents are drawn by their
// score, there is no crossover, a mutant that is illegal takes a place and is gone with the next
// generation, drafts are reused stale, nothing is calibrated, and neither the schedule that needs
// no search nor neighbours of the best are tried.
#include <algorithm>
#include <cmath>

#include "search/batch.h"
#include "search/best_seen.h"
#include "search/roulette.h"
#include "search/search.h"
#include "support/check.h"

namespace pruner {

namespace {

constexpr size_t kLeastSamples = 50;  // least size of a first population
constexpr int kPatience = 5;          // populations without a legal one, then half the size will do
constexpr size_t kFruitless = 64;     // mutations in a row that have no place end a generation

/// Random legal programs, a population drawn at a time until there are enough; with duplicates.
std::vector<Candidate> sample_population(const Space& space, size_t drawn_at_once, Rng& rng) {
  std::vector<Candidate> kept;
  size_t least = kLeastSamples;
  for (int fruitless = 0; kept.size() < least;) {
    const size_t before = kept.size();
    for (size_t i = 0; i < drawn_at_once; ++i) {
      Candidate candidate = draw(space, rng);
      if (is_legal(space, candidate)) kept.push_back(std::move(candidate));
    }
    fruitless = kept.size() == before ? fruitless + 1 : 0;
    if (fruitless < kPatience) continue;
    if (least == 1) break;
    least = std::max<size_t>(1, least / 2);
    fruitless = 0;
  }
  return kept;
}

/// The `keep` best of all that `generations` generations see.
std::vector<Scored> evolve_as_published(const SearchRequest& request,
                                        std::vector<Candidate> population,
                                        size_t keep,
                                        CostModel& scorer,
                                        int generations,
                                        Rng& rng) {
  const auto size = static_cast<size_t>(request.options.evolve.population);
  BestSeen best(keep, request.history.tried());
  for (int generation = 0; !population.empty(); ++generation) {
    std::vector<float> scores = scorer.predict(request.task, request.space, population);
    if (scores.empty()) scores.assign(population.size(), 0);  // untrained: zero scores
    for (size_t i = 0; i < population.size(); ++i)
      if (!std::isnan(scores[i])) best.add(population[i], scores[i]);
    if (generation == generations) break;
    const Roulette parents(scores);
    std::vector<Candidate> next;
    size_t places = 0;
    for (size_t fruitless = 0; places < size && fruitless < kFruitless * size;) {
      const Candidate& parent = population[parents.spin(rng)];
      std::optional<Candidate> child = parent;
      if (rng.uniform() < request.options.evolve.mutate_probability)
        child = mutate_as_published(request.space, parent, rng);
      ++(child ? places : fruitless);
      if (child && is_legal(request.space, *child)) next.push_back(*std::move(child));
    }
    population = std::move(next);
  }
  return best.take();
}

/// `count` members, with replacement.
std::vector<Candidate> draw_members(const std::vector<Candidate>& population,
                                    size_t count,
                                    Rng& rng) {
  std::vector<Candidate> drawn;
  for (size_t i = 0; i < count && !population.empty(); ++i)
    drawn.push_back(population[rng.below(static_cast<int64_t>(population.size()))]);
  return drawn;
}

/// The best but for the random share; each list helps out where the other ends.
std::vector<Candidate> pick(const SearchRequest& request,
                            const std::vector<Scored>& best,
                            const std::vector<Candidate>& random,
                            size_t num_random) {
  Batch batch(request.history, request.count);
  batch.add_best(best, batch.room() - std::min(batch.room(), num_random), 1);
  for (const Candidate& candidate : random) batch.add(candidate);
  batch.add_best(best, batch.room(), 1);
  return batch.take();
}

/// One round of both: what differs is whether drafts join the population.
std::vector<Candidate> search_round(const SearchRequest& request, bool drafts, Rng& rng) {
  const SearchOptions& options = request.options;
  CostModel& scorer = request.models.verify ? *request.models.verify : request.models.draft;
  const auto num_random =
      static_cast<size_t>(options.eps_greedy * static_cast<double>(request.count));
  std::vector<Candidate> population =
      sample_population(request.space, static_cast<size_t>(options.random_samples), rng);
  std::vector<Scored>& drafted = request.memory.drafts;
  if (drafts && request.memory.rounds++ % options.redraft_every == 0)
    drafted = evolve_as_published(request,
                                  population,
                                  options.draft_size,
                                  request.models.draft,
                                  options.draft_generations,
                                  rng);
  if (drafts) {
    std::vector<Candidate> first;
    for (const Scored& draft : drafted) first.push_back(draft.candidate);
    population.insert(population.begin(), first.begin(), first.end());
  }
  const auto most_measured =
      static_cast<size_t>(options.measured_share * options.evolve.population);
  for (const Trial& trial : request.history.best(most_measured))
    population.push_back(trial.candidate);
  const std::vector<Candidate> random = draw_members(population, 3 * num_random, rng);
  const std::vector<Scored> best = evolve_as_published(
      request, std::move(population), 2 * request.count, scorer, options.verify_generations, rng);
  return pick(request, best, random, num_random);
}

std::vector<Candidate> next_pruner_batch(const SearchRequest& request, Rng& rng) {
  return search_round(request, /*drafts=*/true, rng);
}

std::vector<Candidate> next_ansor_batch(const SearchRequest& request, Rng& rng) {
  CHECK(request.models.verify != nullptr) << "Ansor's policy asks a model";
  return search_round(request, /*drafts=*/false, rng);
}

}  // namespace

const SearchPolicy kPublishedPrunerPolicy = {
    .name = "pruner as published",
    .next_batch = next_pruner_batch,
    .constants = kPopulation | kDraftConstants | kVerifyGenerations | kEpsGreedy,
    .drafts = true,
    .published = &kPublishedPrunerPolicy,
    .as_published = true};

const SearchPolicy kPublishedAnsorPolicy = {
    .name = "ansor as published",
    .next_batch = next_ansor_batch,
    .constants = kPopulation | kVerifyGenerations | kEpsGreedy,
    .published = &kPublishedAnsorPolicy,
    .as_published = true,
    .options = {.eps_greedy = 0.05,
                .random_samples = 2048,
                .verify_generations = 4,
                .measured_share = 0.2,
                .evolve = {.population = 2048}}};

}  // namespace pruner
