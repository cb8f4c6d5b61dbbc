// Which box of a stage some loops touch: the one answer that nests, limits and lowering ask for.
#pragma once

#include <vector>

#include "space/loop_nest.h"

namespace pruner {

/// Elements along each axis of `id` that one visit of `at`'s loops inside its first `depth` reads,
/// itself or through stages in between. `block`: what all threads of the block read there.
std::vector<int64_t> touched_extents(
    const LoopNest& nest, StageId id, StageId at, int depth, bool block = false);

/// What one visit of an attached stage computes of each axis: what is read where it hangs.
std::vector<int64_t> visited_extents(const LoopNest& nest, StageId id);

}  // namespace pruner
