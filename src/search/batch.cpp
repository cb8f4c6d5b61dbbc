#include "search/batch.h"

#include <algorithm>

namespace pruner {

static int distance(const Candidate& a, const Candidate& b) {
  if (a.sketch != b.sketch) return static_cast<int>(a.decisions.size() + b.decisions.size());
  return differing_decisions(a.decisions, b.decisions);
}

bool Batch::add(const Candidate& candidate, int min_distance) {
  const auto near = [&](const Candidate& c) { return distance(c, candidate) < min_distance; };
  if (full() || history_.tried().contains(candidate) || std::ranges::any_of(picked_, near))
    return false;
  picked_.push_back(candidate);
  return true;
}

void Batch::add_best(const std::vector<Scored>& ranked, size_t limit, int min_distance) {
  limit = std::min(limit, room());
  for (const int apart : {min_distance, 1}) {
    for (const Scored& scored : ranked) {
      if (limit == 0) return;
      limit -= add(scored.candidate, apart);
    }
  }
}

size_t draw_share(double share, size_t count, Rng& rng) {
  return static_cast<size_t>(share * static_cast<double>(count) + rng.uniform());
}

}  // namespace pruner
