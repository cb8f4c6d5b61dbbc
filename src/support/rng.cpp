#include "support/rng.h"

#include <bit>

#include "support/check.h"

namespace pruner {

static uint64_t splitmix(uint64_t& x) {
  uint64_t z = (x += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

Rng::Rng(uint64_t seed) {
  for (uint64_t& word : state_) word = splitmix(seed);
}

uint64_t Rng::next() {
  const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

int64_t Rng::below(int64_t bound) {
  DCHECK(bound > 0);
  return static_cast<int64_t>((static_cast<unsigned __int128>(next()) * bound) >> 64);
}

double Rng::uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

size_t Rng::weighted(std::span<const double> weights) {
  double total = 0;
  for (const double w : weights) total += w;
  if (!(total > 0)) return static_cast<size_t>(below(static_cast<int64_t>(weights.size())));
  double at = uniform() * total;
  for (size_t i = 0; i < weights.size(); ++i) {
    at -= weights[i];
    if (at < 0) return i;
  }
  return weights.size() - 1;
}

}  // namespace pruner
