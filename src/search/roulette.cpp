#include "search/roulette.h"

#include <algorithm>

namespace pruner {

Roulette::Roulette(std::span<const float> scores) {
  double sum = 0;
  for (const float score : scores)
    ends_.push_back(sum += std::max(0.0, static_cast<double>(score)));
}

size_t Roulette::spin(Rng& rng) const {
  const double drawn = rng.uniform() * ends_.back();
  const auto found = std::ranges::upper_bound(ends_, drawn);
  return ends_.back() > 0 && found != ends_.end() ? static_cast<size_t>(found - ends_.begin()) : 0;
}

}  // namespace pruner
