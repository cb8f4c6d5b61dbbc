// Draft, then verify (Pruner, section 4.1, algorithm 1): candidates evolve by the draft model, a
// few microseconds each; the best few hundred, along with the round's random ones and what measured
// best, are scored by the learned model; the best of these are measured.
#include "search/explorer.h"

namespace pruner {

static std::vector<Candidate> next_batch(const SearchRequest& request, Rng& rng) {
  return explore(request, /*drafts=*/true, rng);
}

const SearchPolicy kPrunerPolicy = {
    .name = "pruner",
    .next_batch = next_batch,
    .constants = kPopulation | kIslands | kDraftConstants | kVerifyGenerations | kEpsGreedy,
    .drafts = true,
    .takes = Ingredients::all()};

}  // namespace pruner
