// The one source of chance: a small seeded generator (xoshiro256**, seeded by splitmix64), the same
// sequence on every machine. Passed as an Rng&; split() gives an independent stream for a thread.
#pragma once

#include <compare>
#include <cstdint>
#include <span>

namespace pruner {

class Rng {
 public:
  explicit Rng(uint64_t seed);

  uint64_t next();
  /// Uniform in [0, bound); bound > 0.
  int64_t below(int64_t bound);
  /// Uniform in [0, 1).
  double uniform();
  /// An index drawn with probability proportional to its (non-negative) weight.
  size_t weighted(std::span<const double> weights);
  /// An independent generator; the same calls in the same order give the same streams.
  Rng split() { return Rng(next()); }

  /// Equal generators draw equal numbers from here on.
  friend auto operator<=>(const Rng&, const Rng&) = default;

 private:
  uint64_t state_[4];
};

}  // namespace pruner
