// A candidate of one task -> that of another which is the same operator on other extents.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "space/space.h"

namespace pruner {

/// A tile of an open axis of a cluster at the root: outside of its registers stand loops, decided
/// by some factors, and around them the one that takes the rest.
struct OpenTile {
  StageId stage;
  int axis = 0;
  int64_t unit = 1;           // elements in registers
  bool whole = false;         // as long as its axis, or longer
  DecisionRef rows = kFixed;  // that decides these, of an axis that is not the vectors'
  std::vector<DecisionRef> decisions = {};  // of the loops that have more than one iteration, from
  std::vector<int64_t> factors = {};        // the outermost in, and their iterations
};
std::vector<OpenTile> open_tiles(const Sketch& sketch, const Candidate& candidate);

/// Iterations of a tile's loops at an extent of its axis, a number or a formula: no more than the
/// factors, and such that as few tiles as they make, but two at least, cover the axis evenly, so
/// that little is done twice. Two, as one tile alone is another program. A tile that covers its
/// axis goes on to be one of two.
template <typename T>
std::vector<T> even_iterations(const OpenTile& tile, const T& extent) {
  using std::max, std::min;
  const auto ceil_div = [](const T& a, const T& b) { return floor_div(a + b - T(1), b); };
  int64_t all = 1;
  for (const int64_t factor : tile.factors) all *= factor;
  const T units = ceil_div(extent, T(tile.unit));
  T left = tile.whole ? ceil_div(units, T(2))
                      : min(T(all), ceil_div(units, max(T(2), ceil_div(units, T(all)))));
  std::vector<T> iterations;
  for (const int64_t factor : tile.factors) {
    all /= factor;
    const T most = ceil_div(left, T(all));
    iterations.push_back(tile.whole && iterations.empty() ? most : min(T(factor), most));
    left = ceil_div(left, iterations.back());
  }
  return iterations;
}

/// A candidate of `to`, a space of any tiles, with the sketch's name and the decisions that
/// `candidate` has in `from`, but for tiles of open axes, which have even_iterations(); what is
/// left over of an axis is what its outermost loop takes. nullopt: the sketch or a decision is not
/// there, or the candidate is not legal.
std::optional<Candidate> carry_over(const Space& from, const Candidate& candidate, const Space& to);

/// The candidate with tiles of open axes no longer than these are in `least`, another space of the
/// same operator, of one where that has no such sketch: outer tiles become smaller first. What it
/// gives may not be legal.
Candidate with_tiles_within(const Space& space, Candidate candidate, const Space& least);

/// The legal candidate of `to` that is nearest to it, of those that a search draws
/// (nearest_legal()); nullopt: the sketch is not there, or nothing near is legal.
std::optional<Candidate> nearest_like(const Space& from,
                                      const Candidate& candidate,
                                      const Space& to);

}  // namespace pruner
