// A candidate of our own space in the words of Ansor's steps: splits with the factors that were
// decided, orders, fused and annotated loops, places, copies, pragmas. For models that read steps
// (analysis/primitives.h); the list says what was decided and is not replayed: a sketch's stages
// are there from the start, and tiles may overlap or reach beyond an axis.
//
// Consumers come first, as in Ansor's lists. A split has all its levels, those of extent 1 too, so
// that a number has one place whatever was decided. Iterators are numbered before the reordering.
#pragma once

#include <vector>

#include "ansor/steps.h"
#include "space/space.h"

namespace pruner::ansor {

/// Stages are numbered as in the sketch's DAG.
std::vector<Step> steps_of(const Space& space, const Candidate& candidate);

}  // namespace pruner::ansor
