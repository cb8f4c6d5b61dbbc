// Bound inference: which part of each stage is computed at one visit, and so every loop's extent.
// Consumers come first; a region is what the loops inside the attach point read of it. Loops bound
// to threads count as inside where the buffer's scope is wider than the thread's.
#pragma once

#include "ansor/nest.h"

namespace pruner::ansor {

/// Sets regions, loops, and the state's extents.
/// Errors: an output that is not at root, a stage computed at a loop that is not around one of its
/// readers, a fused loop of over 2^48 iterations.
Result<Unit> infer_bounds(ReplayNest& nest);

/// Values of all iterators of a stage from those of its leaves (by iterator); what a leaf does not
/// have stays invalid.
void pass_up_values(ReplayNest& nest, int stage, std::vector<IndexId>& values);

/// The index expressions of an access at the given values of the stage's iterators.
std::vector<IndexId> access_indices(IndexPool& pool,
                                    const Load& access,
                                    const ComputeDag& dag,
                                    std::span<const IndexId> values);

/// The leaves and axes around a stage, from its attach point outwards, as (stage, iterator).
std::vector<std::pair<int, int>> attach_path(const State& state, int stage);

}  // namespace pruner::ansor
