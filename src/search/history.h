// The history of one task while it is searched: every candidate that was tried, with its time.
#pragma once

#include <unordered_set>
#include <vector>

#include "space/candidate.h"

namespace pruner {

/// The time of a failed trial, and of a task without a valid trial (Ansor's number).
inline constexpr double kWorstCost = 1e10;

using CandidateSet = std::unordered_set<Candidate, CandidateHash>;

struct Trial {
  Candidate candidate;
  double cost_s = kWorstCost;
};

/// The trials of a task, fastest first; of equal ones the earlier.
class History {
 public:
  /// Adds a trial; a candidate tried again takes its new time.
  void add(const Candidate& candidate, double cost_s);
  /// The candidate is being tried: it is in tried() already.
  void expect(const Candidate& candidate) { tried_.insert(candidate); }

  bool empty() const { return trials_.empty(); }
  const std::vector<Trial>& trials() const { return trials_; }
  const CandidateSet& tried() const { return tried_; }
  /// The up to `count` fastest trials that did not fail.
  std::vector<Trial> best(size_t count) const;
  /// Seconds of the fastest trial; kWorstCost when there is none.
  double best_cost_s() const { return trials_.empty() ? kWorstCost : trials_.front().cost_s; }

 private:
  std::vector<Trial> trials_;
  CandidateSet tried_;
};

}  // namespace pruner
