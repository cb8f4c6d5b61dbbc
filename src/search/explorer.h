// One round of an evolutionary search by a learned model, with or without drafts. Pruner's and
// Ansor's policies are this search, each with constants and ingredients of its own.
#pragma once

#include "search/search.h"

namespace pruner {

/// Returns the candidates of the round. If `drafts`, the draft model's best candidates join the
/// population that the learned model scores (Pruner, section 4.1); otherwise the population begins
/// with random and measured candidates alone (Ansor, section 5).
std::vector<Candidate> explore(const SearchRequest& request, bool drafts, Rng& rng);

}  // namespace pruner
