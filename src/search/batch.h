// The candidates that a round will measure: nothing twice, nothing that was tried.
#pragma once

#include <vector>

#include "search/evolve.h"
#include "search/history.h"

namespace pruner {

class Batch {
 public:
  Batch(const History& history, size_t count) : history_(history), count_(count) {}

  bool full() const { return picked_.size() >= count_; }
  size_t room() const { return count_ - picked_.size(); }

  /// Adds it if it is new and differs in `min_distance` decisions from all that was picked.
  bool add(const Candidate& candidate, int min_distance = 1);
  /// Adds up to `limit` of a ranked list, first those that are not like one another.
  void add_best(const std::vector<Scored>& ranked, size_t limit, int min_distance);

  std::vector<Candidate> take() { return std::move(picked_); }

 private:
  const History& history_;
  size_t count_;
  std::vector<Candidate> picked_;
};

/// A share of a batch, rounded up or down by chance so that its mean is exact.
size_t draw_share(double share, size_t count, Rng& rng);

}  // namespace pruner
