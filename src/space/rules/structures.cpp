// The two structures of an anchored cluster. Register tile (SSSRS): the reduction runs to its end
// in registers, then the epilogue writes the tile. Cache tile (SSRSRS): chunks of the reduction are
// added to a tile in cache, so that both operands of a chunk stay in the inner caches.
#include "space/sketch_rule.h"

namespace pruner {

static bool always(const ComputeDag&, const Target&) { return true; }

static bool has_long_contraction(const ComputeDag& dag, const Target&) {
  for (int s = 0; s < dag.size(); ++s) {
    if (!needs_multi_level_tiling(dag, StageId{s}) || !dag[StageId{s}].is_reduction()) continue;
    for (const Iterator& axis : dag[StageId{s}].reduce_axes) {
      if (axis.extent >= 64) return true;
    }
  }
  return false;
}

const StructureRule kRegisterTile = {"register-tile", always, false};
const StructureRule kCacheTile = {"cache-tile", has_long_contraction, true};

}  // namespace pruner
