// The numbers that a candidate's decisions come to: iterations of levels, tiles, the box of an
// operand that a block fetches. The loop nest, the limits and the drawing of candidates share them.
#pragma once

#include <bit>
#include <span>

#include "space/space.h"

namespace pruner {

/// Elements of an axis that the levels nobody decides hold: lanes, what an instruction takes.
inline int64_t fixed_elements(const AxisTiles& tiles) {
  int64_t elements = 1;
  for (const Factor& factor : tiles.factors)
    if (factor.decision == kFixed && factor.count > 0) elements *= factor.count;
  return elements;
}

/// Tiles of Stage::unrolled that cover a stage; its elements where it has none.
int64_t tile_count(const Stage& stage);

class Factors {
 public:
  explicit Factors(const Candidate& candidate) : decisions_(candidate.decisions) {}

  int64_t value(DecisionRef ref, int64_t fixed = 1) const {
    return ref == kFixed ? fixed : decisions_[ref];
  }
  /// Iterations of a level's loop over an axis; 1 where they are the rest.
  int64_t at(const AxisTiles& tiles, int level) const {
    const Factor& factor = tiles.factors[level];
    return value(factor.decision, std::max(factor.count, 1));
  }
  /// Elements of an axis that the levels from `level` on hold; but for the rest.
  int64_t inside(const AxisTiles& tiles, int level) const {
    return product(tiles, tiles.looped >> level << level);
  }
  /// The product of the levels of one axis that are bound to `bind`.
  int64_t bound(const StagePlan& plan, const AxisTiles& tiles, Bind bind) const {
    int64_t product = 1;
    for (uint32_t left = tiles.looped; left != 0; left &= left - 1) {
      const int level = std::countr_zero(left);
      if (plan.structure->levels[level].bind == bind) product *= at(tiles, level);
    }
    return product;
  }

  /// Threads of a block of the kernel with this root.
  int64_t block_threads(const StagePlan& root) const;
  /// Extents of what a block fetches of an operand at a time; `moved` is as in ReadBox.
  std::vector<int64_t> fetched_box(const Sketch& sketch,
                                   const StagePlan& fetch,
                                   bool moved = false) const;

 private:
  int64_t product(const AxisTiles& tiles, uint32_t levels) const {
    int64_t product = 1;
    for (; levels != 0; levels &= levels - 1) product *= at(tiles, std::countr_zero(levels));
    return product;
  }

  std::span<const int32_t> decisions_;
};

}  // namespace pruner
