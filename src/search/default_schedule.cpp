#include "search/search.h"
#include "support/check.h"

namespace pruner {

Candidate default_schedule(const Task& task, const Space& space) {
  // Sized for 30 ms: some 1,200 scores of 10 us, and the draws.
  const EvolveOptions options = {.population = 256, .generations = 4, .elites = 32};
  Rng rng(0);
  const std::unique_ptr<CostModel> draft = make_draft_model();
  const std::vector<Scored> best = evolve(task, space, sample_legal(space, 192, rng), *draft, options, rng);
  CHECK(!best.empty()) << "no legal candidate was drawn for " << task.name;
  return best.front().candidate;
}

}  // namespace pruner
