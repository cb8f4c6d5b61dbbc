// Tiles of a cluster's root: what they divide, what they must fit, and drawing those of one axis,
// for samples and for mutations.
#pragma once

#include "space/space.h"

namespace pruner {

/// Returns the elements of each axis of a cluster's root that one visit of the cluster computes. A
/// visit computes all, or what a tile of the root around the cluster reads.
std::vector<int64_t> visited_extents(const Sketch& sketch,
                                     const StagePlan& plan,
                                     const Candidate& candidate);

/// The tiles of one axis fit it, and overlap little more than they must, or of `any_tiles`.
bool tiles_fit(const AxisTiles& tiles,
               const StagePlan& plan,
               int64_t extent,
               const Candidate& candidate,
               bool any_tiles = false);

/// Accumulators, one vector of the packed operand for each, and a broadcast fit the registers; of a
/// window the accumulators take no more than half of them.
bool registers_fit(const StagePlan& root,
                   const StagePlan& anchor,
                   const Candidate& candidate,
                   const Target& target);

/// The stage that accumulates the reduction of a root's cluster; nullptr: there is none.
const StagePlan* anchor_of(const Sketch& sketch, const StagePlan& root);

/// Redraws the factors of one tiled axis of `plan` until they fit its extent.
void draw_axis(const Sketch& sketch,
               const StagePlan& plan,
               const AxisTiles& tiles,
               int64_t extent,
               Candidate& candidate,
               Rng& rng);

}  // namespace pruner
