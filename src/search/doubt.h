// The error of each candidate's predicted score, as a random variable: similar schedules have
// similar errors, and near measured schedules the error is small. A batch whose candidates are
// chosen by randomly drawn errors (Thompson sampling) does not consist of near-copies of one
// favourite.
#pragma once

#include <span>
#include <vector>

#include "search/evolve.h"
#include "search/history.h"

namespace pruner {

class Doubt {
 public:
  /// The candidates' scores are by a model that was trained on `history`. There should be at most a
  /// few hundred of both: the work grows with the cube of their number.
  Doubt(std::span<const Candidate> candidates, const History& history);

  /// A deviation of ln(speed) for each candidate.
  std::vector<double> draw(Rng& rng) const;

 private:
  size_t count_;
  std::vector<double> factor_;  // lower triangular, by rows: times independent normals a draw
};

}  // namespace pruner
