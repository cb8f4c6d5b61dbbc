// Ansor's search (section 5): a population of random programs and of what measured best evolves by
// the learned model alone; a small share of each batch is random. While the model has nothing to
// say, programs are drawn.
#include "search/explorer.h"
#include "support/check.h"

namespace pruner {

static std::vector<Candidate> next_batch(const SearchRequest& request, Rng& rng) {
  CHECK(request.models.verify != nullptr) << "Ansor's policy asks a model";
  return explore(request, /*drafts=*/false, rng);
}

const SearchPolicy kAnsorPolicy = {
    .name = "ansor",
    .next_batch = next_batch,
    .constants = kPopulation | kIslands | kVerifyGenerations | kEpsGreedy,
    .takes = Ingredients::all().without(
        {Ingredient::kFreshDrafts, Ingredient::kCalibration, Ingredient::kWeights}),
    .options = {.eps_greedy = 0.05,
                .random_samples = 2048,
                .verify_generations = 4,
                .measured_share = 0.2,
                .evolve = {.population = 2048, .elites = 128, .islands = 4},
                .ingredients = {Ingredient::kExactEpsilon,
                                Ingredient::kIncrementalTraining,
                                Ingredient::kRankParents,
                                Ingredient::kDistinct,
                                Ingredient::kCrossover,
                                Ingredient::kLegalMutants,
                                Ingredient::kIslands}}};

}  // namespace pruner
