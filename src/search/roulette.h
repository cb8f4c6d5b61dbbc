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

  /// Returns the place of a drawn member; the first if no score is positive.
  size_t spin(Rng& rng) const;

 private:
  std::vector<double> ends_;  // end of each member's share
};

}  // namespace pruner
