// Draws a member of a population with a probability in proportion to its score.
#pragma once

#include <span>
#include <vector>

#include "support/rng.h"

namespace pruner {

class Roulette {
 public:
  /// Scores below zero count as zero.
  explicit Roulette(std::span<const float> scores);

  /// The place of a member; where no score is positive, the first.
  size_t spin(Rng& rng) const;

 private:
  std::vector<double> ends_;  // of each member's share
};

}  // namespace pruner
