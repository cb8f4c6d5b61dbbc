// How far a score may be from the truth, by candidate: deviations are alike where schedules are,
// and small near what was measured. Drawn from, it spreads a batch over what may be the best
// instead of over siblings of what is thought to be (Thompson sampling).
#pragma once

#include <span>
#include <vector>

#include "search/evolve.h"
#include "search/history.h"

namespace pruner {

class Doubt {
 public:
  /// Of candidates whose scores the trials of `history` have gone into. Fewer of both than some
  /// hundreds: the work grows with the third power.
  Doubt(std::span<const Candidate> candidates, const History& history);

  /// A deviation of ln(speed) for each candidate.
  std::vector<double> draw(Rng& rng) const;

 private:
  size_t count_;
  std::vector<double> factor_;  // lower triangular, by rows: times independent normals a draw
};

}  // namespace pruner
