#include <algorithm>

#include "search/search.h"
#include "support/check.h"

namespace pruner {

std::vector<Candidate> best_by_draft(const Task& task,
                                     const Space& space,
                                     const DraftSearch& search) {
  constexpr size_t kKept = 32, kMostAccepted = 512;
  // Some 3,600 scores of a few microseconds, and as many draws; from candidates that are good at
  // other extents 600 scores.
  const bool anew = search.near.empty();
  const EvolveOptions options =
      anew ? EvolveOptions{.population = 384, .generations = 8, .elites = 48}
           : EvolveOptions{.population = 96, .generations = 5, .elites = 24};
  const size_t draws = anew ? 512 : 64;
  Rng rng(0);
  std::vector<Candidate> drawn = sample_legal(space, search.accepts ? 8 * draws : draws, rng);
  if (search.accepts) {
    std::erase_if(drawn, [&](const Candidate& candidate) { return !search.accepts(candidate); });
    drawn.resize(std::min(drawn.size(), kMostAccepted));
  }
  drawn.insert(drawn.begin(), search.near.begin(), search.near.end());
  std::vector<Candidate> best;
  for (Scored& found : evolve(task, space, std::move(drawn), *make_draft_model(), options, rng)) {
    if (best.size() == kKept) break;
    // Candidates that evolve from accepted ones may not be accepted any more.
    if (!search.accepts || search.accepts(found.candidate))
      best.push_back(std::move(found.candidate));
  }
  return best;
}

Candidate default_schedule(const Task& task, const Space& space) {
  const std::vector<Candidate> best = best_by_draft(task, space, {});
  CHECK(!best.empty()) << "no legal candidate was drawn for " << task.name;
  return best.front();
}

std::optional<Candidate> default_schedule_of(const Task& task,
                                             const Space& space,
                                             const std::function<bool(const Candidate&)>& accepts) {
  std::vector<Candidate> best = best_by_draft(task, space, {accepts, {}});
  if (best.empty()) return std::nullopt;
  return std::move(best.front());
}

}  // namespace pruner
