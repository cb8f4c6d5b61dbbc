// A candidate of one task -> that of another which is the same operator on other extents.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "space/space.h"
#include "support/ceil_div.h"

namespace pruner {

/// A tile of an open axis (a dynamic dimension) of a cluster at the root. Loops with decided
/// factors go around its register tile; the outermost loop takes the rest of the axis.
struct OpenTile {
  StageId stage;
  int axis = 0;
  int64_t unit = 1;           // elements of the register tile
  bool whole = false;         // the tile is as long as its axis, or longer
  DecisionRef rows = kFixed;  // decision on the register tile, unless on the vector axis
  std::vector<DecisionRef> decisions = {};  // one per loop with iterations > 1, outermost first
  std::vector<int64_t> factors = {};        // iterations of these loops
};
std::vector<OpenTile> open_tiles(const Sketch& sketch, const Candidate& candidate);

/// Returns the iterations of a tile's loops at `extent` of its axis, a number or a formula. They
/// are no more than the factors. As few tiles as the factors make cover the axis evenly, so that
/// little is computed twice. There are at least two tiles, because one alone is another program. A
/// tile that covers its axis becomes one of two; its outermost loop alone may exceed its factor.
template <typename T>
std::vector<T> even_iterations(const OpenTile& tile, const T& extent) {
  using std::max, std::min;
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

/// Returns a candidate of `to`, a space of any tiles, with the sketch's name and the decisions that
/// `candidate` has in `from`. Tiles of open axes have even_iterations(), and the outermost loop of
/// an axis takes the rest. Returns nullopt if `to` lacks the sketch or a decision, or if the result
/// is not legal.
std::optional<Candidate> carry_over(const Space& from, const Candidate& candidate, const Space& to);

/// Returns the candidate with tiles of open axes no longer than these axes are in `least`, another
/// space of the same operator. If `least` has no such sketch, the tiles have length 1. Outer tiles
/// become smaller first. The result may not be legal.
Candidate with_tiles_within(const Space& space, Candidate candidate, const Space& least);

/// The legal candidate of `to` that is nearest to it, of those that a search draws
/// (nearest_legal()); nullopt: the sketch is not there, or nothing near is legal.
std::optional<Candidate> nearest_like(const Space& from,
                                      const Candidate& candidate,
                                      const Space& to);

}  // namespace pruner
