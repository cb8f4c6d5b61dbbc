// Candidates of a task, for tests that need some and do not mind which.
#pragma once

#include <vector>

#include "space/space.h"

namespace pruner {

inline std::vector<Candidate> some_candidates(const Task& task, size_t count) {
  const Space space = make_space(task);
  Rng rng(3);
  std::vector<Candidate> candidates;
  while (candidates.size() < count) {
    Candidate candidate = sample(space, rng);
    if (is_legal(space, candidate)) candidates.push_back(std::move(candidate));
  }
  return candidates;
}

}  // namespace pruner
