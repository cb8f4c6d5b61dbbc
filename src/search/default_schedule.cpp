#include "search/search.h"
#include "support/check.h"

namespace pruner {

// Some 3,600 scores of a few microseconds, and as many draws.
static std::vector<Scored> evolved(const Task& task,
                                   const Space& space,
                                   std::vector<Candidate> drawn,
                                   Rng& rng) {
  const EvolveOptions options = {.population = 384, .generations = 8, .elites = 48};
  return evolve(task, space, std::move(drawn), *make_draft_model(), options, rng);
}

Candidate default_schedule(const Task& task, const Space& space) {
  Rng rng(0);
  const std::vector<Scored> best = evolved(task, space, sample_legal(space, 512, rng), rng);
  CHECK(!best.empty()) << "no legal candidate was drawn for " << task.name;
  return best.front().candidate;
}

std::optional<Candidate> default_schedule_of(const Task& task,
                                             const Space& space,
                                             const std::function<bool(const Candidate&)>& accepts) {
  constexpr size_t kDraws = 4096, kMost = 512;
  Rng rng(0);
  std::vector<Candidate> drawn = sample_legal(space, kDraws, rng);
  std::erase_if(drawn, [&](const Candidate& candidate) { return !accepts(candidate); });
  drawn.resize(std::min(drawn.size(), kMost));
  // Candidates that evolve from accepted ones may not be accepted any more.
  for (const Scored& found : evolved(task, space, std::move(drawn), rng))
    if (accepts(found.candidate)) return found.candidate;
  return std::nullopt;
}

}  // namespace pruner
