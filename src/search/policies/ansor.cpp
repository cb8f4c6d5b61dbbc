// Ansor's search (section 5): a population of random programs and of what measured best evolves by
// the learned model alone; a small share of each batch is random. While the model has nothing to
// say, programs are drawn.
#include <algorithm>

#include "search/batch.h"
#include "search/search.h"
#include "support/check.h"

namespace pruner {

namespace {

constexpr int kPopulation = 2048;
constexpr int kGenerations = 4;
constexpr double kMeasuredShare = 0.2;  // of the first population, at most
constexpr double kEpsGreedy = 0.05;
constexpr int kElites = 128;

std::vector<Candidate> next_batch(const SearchRequest& request, Rng& rng) {
  CHECK(request.models.verify != nullptr) << "Ansor's policy asks a model";
  Batch batch(request.history, request.count);
  const EvolveOptions& given = request.options.evolve;
  std::vector<Candidate> population =
      sample_legal(request.space, kPopulation, rng, given.islands, given.jobs);
  const std::vector<Candidate> random(
      population.begin(),
      population.begin() + static_cast<int64_t>(std::min(population.size(), 4 * request.count)));
  for (const Trial& trial :
       request.history.best(static_cast<size_t>(kMeasuredShare * kPopulation))) {
    population.push_back(trial.candidate);
  }
  const EvolveOptions options = {.population = kPopulation,
                                 .generations = kGenerations,
                                 .elites = kElites,
                                 .mutate_probability = 0.85,
                                 .islands = given.islands,
                                 .jobs = given.jobs,
                                 .exclude = &request.history.tried()};
  const std::vector<Scored> best = evolve(
      request.task, request.space, std::move(population), *request.models.verify, options, rng);
  const size_t num_random = draw_share(kEpsGreedy, request.count, rng);
  batch.add_best(best, batch.room() - num_random, 1);
  for (const Candidate& candidate : random) batch.add(candidate);
  batch.add_best(best, batch.room(), 1);
  return batch.take();
}

}  // namespace

const SearchPolicy kAnsorPolicy = {"ansor", next_batch};

}  // namespace pruner
