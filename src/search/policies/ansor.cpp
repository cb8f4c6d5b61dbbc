// Ansor's search (section 5): a population of random programs and of what measured best evolves by
// the learned model alone; a small share of each batch is random. While the model has nothing to
// say, programs are drawn. Beyond the paper: parents are drawn by rank, a population has no
// duplicates, tiles cross over (published.cpp is without that).
#include <algorithm>

#include "search/batch.h"
#include "search/search.h"
#include "support/check.h"

namespace pruner {

namespace {

std::vector<Candidate> next_batch(const SearchRequest& request, Rng& rng) {
  CHECK(request.models.verify != nullptr) << "Ansor's policy asks a model";
  Batch batch(request.history, request.count);
  const SearchOptions& options = request.options;
  std::vector<Candidate> population = sample_legal(request.space,
                                                   static_cast<size_t>(options.random_samples),
                                                   rng,
                                                   options.evolve.islands,
                                                   options.evolve.jobs);
  const std::vector<Candidate> random(
      population.begin(),
      population.begin() + static_cast<int64_t>(std::min(population.size(), 4 * request.count)));
  const auto most_measured =
      static_cast<size_t>(options.measured_share * options.evolve.population);
  for (const Trial& trial : request.history.best(most_measured))
    population.push_back(trial.candidate);
  EvolveOptions evolve_options = options.evolve;
  evolve_options.generations = options.verify_generations;
  evolve_options.exclude = &request.history.tried();
  const std::vector<Scored> best = evolve(request.task,
                                          request.space,
                                          std::move(population),
                                          *request.models.verify,
                                          evolve_options,
                                          rng);
  const size_t num_random = draw_share(options.eps_greedy, request.count, rng);
  batch.add_best(best, batch.room() - num_random, 1);
  for (const Candidate& candidate : random) batch.add(candidate);
  batch.add_best(best, batch.room(), 1);
  return batch.take();
}

}  // namespace

const SearchPolicy kAnsorPolicy = {
    .name = "ansor",
    .next_batch = next_batch,
    .constants = kPopulation | kIslands | kVerifyGenerations | kEpsGreedy,
    .published = &kPublishedAnsorPolicy,
    .options = {.eps_greedy = 0.05,
                .random_samples = 2048,
                .verify_generations = 4,
                .measured_share = 0.2,
                .evolve = {.population = 2048, .elites = 128, .islands = 4}}};

}  // namespace pruner
