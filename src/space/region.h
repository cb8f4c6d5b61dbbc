// The box of a stage that some loops touch, computed in one place for nests, limits and lowering.
#pragma once

#include <vector>

#include "space/loop_nest.h"

namespace pruner {

/// Elements along each axis of `id` that one visit of `at`'s loops inside its first `depth` reads,
/// itself or through stages in between.
std::vector<int64_t> touched_extents(const LoopNest& nest, StageId id, StageId at, int depth);

/// Returns the elements of each axis that one visit of an attached stage computes: the box that is
/// read at the place where the stage is attached.
std::vector<int64_t> visited_extents(const LoopNest& nest, StageId id);

}  // namespace pruner
