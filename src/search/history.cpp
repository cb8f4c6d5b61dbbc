#include "search/history.h"

#include <algorithm>

namespace pruner {

void History::add(const Candidate& candidate, double cost_s) {
  if (!tried_.insert(candidate).second) {
    std::erase_if(trials_, [&](const Trial& t) { return t.candidate == candidate; });
  }
  const auto after = std::ranges::upper_bound(trials_, cost_s, {}, &Trial::cost_s);
  trials_.insert(after, {candidate, cost_s});
}

std::vector<Trial> History::best(size_t count) const {
  std::vector<Trial> best;
  for (const Trial& trial : trials_) {
    if (best.size() == count || trial.cost_s >= kWorstCost) break;
    best.push_back(trial);
  }
  return best;
}

}  // namespace pruner
