#include "search/search.h"
#include "support/check.h"

namespace pruner {

Candidate default_schedule(const Task& task, const Space& space) {
  // Some 3,600 scores of a few microseconds, and as many draws.
  const EvolveOptions options = {.population = 384, .generations = 8, .elites = 48};
  Rng rng(0);
  const std::unique_ptr<CostModel> draft = make_draft_model();
  const std::vector<Scored> best =
      evolve(task, space, sample_legal(space, 512, rng), *draft, options, rng);
  CHECK(!best.empty()) << "no legal candidate was drawn for " << task.name;
  return best.front().candidate;
}

}  // namespace pruner
