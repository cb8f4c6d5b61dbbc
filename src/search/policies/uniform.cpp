// Programs that no model chose, for data sets: a share of each batch is drawn uniformly, the rest
// are evolved from drawn ones by chance, as TenSet's dump_programs.py does with a random model.
#include "search/batch.h"
#include "search/search.h"

namespace pruner {

namespace {

constexpr size_t kDrawn = 4;     // draws per wanted candidate; some were tried before
constexpr size_t kAttempts = 8;  // attempts per mutant; some have no place or were tried before
constexpr int64_t kMostMutations = 4;

/// A drawn program after some small changes.
std::optional<Candidate> evolved(const Space& space,
                                 const std::vector<Candidate>& drawn,
                                 Rng& rng) {
  std::optional<Candidate> child = drawn[rng.below(static_cast<int64_t>(drawn.size()))];
  for (int64_t left = 1 + rng.below(kMostMutations); child && left > 0; --left)
    child = mutate(space, *child, rng);
  return child;
}

std::vector<Candidate> next_batch(const SearchRequest& request, Rng& rng) {
  Batch batch(request.history, request.count);
  const std::vector<Candidate> drawn = sample_legal(request.space, kDrawn * request.count, rng);
  if (drawn.empty()) return {};
  const size_t num_evolved = draw_share(1 - request.options.eps_greedy, request.count, rng);
  for (const Candidate& candidate : drawn) {
    if (batch.room() > num_evolved) batch.add(candidate);
  }
  for (size_t attempt = 0; attempt < kAttempts * num_evolved && !batch.full(); ++attempt) {
    if (const std::optional<Candidate> child = evolved(request.space, drawn, rng))
      batch.add(*child);
  }
  for (const Candidate& candidate : drawn) batch.add(candidate);  // fills up if few mutants are new
  return batch.take();
}

}  // namespace

const SearchPolicy kUniformPolicy = {.name = "uniform",
                                     .next_batch = next_batch,
                                     .constants = kEpsGreedy,
                                     .published = false,
                                     .options = {.ingredients = {}}};

}  // namespace pruner
