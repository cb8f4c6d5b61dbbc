// Evolutionary search of a task's space by a cost model: one engine, any scorer.
#pragma once

#include <vector>

#include "model/cost_model.h"
#include "search/history.h"
#include "search/ingredient.h"

namespace pruner {

struct EvolveOptions {
  int population = 768;  // candidates a generation
  int generations = 4;
  int elites = 96;                   // best so far that enter the next generation
  double mutate_probability = 0.85;  // otherwise two parents are crossed over
  int islands = 1;  // equal parts of a generation whose parents are their own members only
  int jobs = 1;     // threads that breed, an island each; the result does not depend on them
  const CandidateSet* exclude = nullptr;         // may be parents, never results
  Ingredients ingredients = Ingredients::all();  // kRankParents to kLegalMutants are read
};

struct Scored {
  Candidate candidate;
  float score;
};

/// Returns the distinct candidates that were seen in `generations` generations from `population`,
/// best first. Only legal candidates are scored. An evolution ends early if the space yields
/// nothing new, or if the scorer has nothing to say.
std::vector<Scored> evolve(const Task& task,
                           const Space& space,
                           std::vector<Candidate> population,
                           CostModel& scorer,
                           const EvolveOptions& options,
                           Rng& rng);

/// Up to `count` distinct legal candidates, drawn uniformly: fewer where the space is small.
/// `streams` of chance draw equal parts, on up to `jobs` threads.
std::vector<Candidate> sample_legal(
    const Space& space, size_t count, Rng& rng, int streams = 1, int jobs = 1);

}  // namespace pruner
