// The best candidates that an evolution has seen: so many, none of them twice.
#pragma once

#include <vector>

#include "search/evolve.h"
#include "search/history.h"

namespace pruner {

class BestSeen {
 public:
  /// Candidates of `measured`, which must outlive the object, are left out.
  BestSeen(size_t capacity, const CandidateSet& measured)
      : capacity_(capacity), measured_(measured) {}

  void add(const Candidate& candidate, float score);
  /// Returns all candidates that are held, best first.
  std::vector<Scored> take();

 private:
  size_t capacity_;
  const CandidateSet& measured_;
  CandidateSet held_;
  std::vector<Scored> heap_;  // the worst in front
};

}  // namespace pruner
