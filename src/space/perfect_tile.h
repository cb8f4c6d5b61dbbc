// Draws tiles of an axis that divide it, as MetaSchedule does.
#pragma once

#include <cstdint>
#include <vector>

#include "support/rng.h"

namespace pruner {

/// Tiles of an axis, outermost first, whose product is its extent: all ways to divide the powers of
/// a prime among them are alike, and those with an innermost tile above `most_innermost` are drawn
/// again (TVM's SamplePerfectTile).
std::vector<int64_t> sample_perfect_tile(int64_t extent,
                                         size_t tiles,
                                         int64_t most_innermost,
                                         Rng& rng);

}  // namespace pruner
