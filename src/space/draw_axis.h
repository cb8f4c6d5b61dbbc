// Drawing the tiles of one axis, for samples and for mutations.
#pragma once

#include "space/space.h"

namespace pruner {

/// Redraws the factors of one tiled axis of `plan` until they fit it.
void draw_axis(const Sketch& sketch,
               const StagePlan& plan,
               const AxisPlan& axis,
               Candidate& candidate,
               Rng& rng);

}  // namespace pruner
