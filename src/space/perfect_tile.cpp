#include "space/perfect_tile.h"

#include <set>

#include "support/check.h"

namespace pruner {

namespace {

/// The powers of the primes of a number.
std::vector<std::pair<int64_t, int>> factorize(int64_t number) {
  std::vector<std::pair<int64_t, int>> powers;
  for (int64_t prime = 2; number > 1; ++prime) {
    if (prime * prime > number) prime = number;
    int power = 0;
    for (; number % prime == 0; number /= prime) ++power;
    if (power > 0) powers.push_back({prime, power});
  }
  return powers;
}

/// `power` as a sum of `parts` numbers from 0 on, each such sum with the same probability.
std::vector<int> draw_sum(int power, size_t parts, Rng& rng) {
  const auto places = static_cast<int64_t>(parts) - 1 + power;
  std::set<int64_t> bars;  // between the parts
  for (int64_t last = places - static_cast<int64_t>(parts) + 1; last < places; ++last) {
    const int64_t drawn = rng.below(last + 1);
    bars.insert(bars.contains(drawn) ? last : drawn);
  }
  bars.insert(places);
  std::vector<int> sum;
  int64_t before = -1;
  for (const int64_t bar : bars) {
    sum.push_back(static_cast<int>(bar - before - 1));
    before = bar;
  }
  return sum;
}

}  // namespace

std::vector<int64_t> sample_perfect_tile(int64_t extent,
                                         size_t tiles,
                                         int64_t most_innermost,
                                         Rng& rng) {
  CHECK(most_innermost >= 1);
  const std::vector<std::pair<int64_t, int>> powers = factorize(extent);
  std::vector<int64_t> drawn;
  do {
    drawn.assign(tiles, 1);
    for (const auto& [prime, power] : powers) {
      const std::vector<int> sum = draw_sum(power, tiles, rng);
      for (size_t t = 0; t < tiles; ++t)
        for (int i = 0; i < sum[t]; ++i) drawn[t] *= prime;
    }
  } while (drawn.back() > most_innermost);
  return drawn;
}

}  // namespace pruner
