// How much of a stage's loops runs where they end before a part that is known (ConstantPart).
#pragma once

#include <cstddef>

#include "space/loop_nest.h"

namespace pruner {

/// The share of the iterations of the stage's first `depth` loops that lie before its constant
/// part, where the innermost serial loop along it ends: 1 without one. A tile that reaches into the
/// part is computed whole. The mean over places on the other axes, each the middle of its tile.
double computed_share(const LoopNest& nest, const NestStage& stage, size_t depth);

}  // namespace pruner
