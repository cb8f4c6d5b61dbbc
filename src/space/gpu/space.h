// The GPU half of space.h: what make_loop_nest(), is_legal() and sample() do for a GPU's sketch.
#pragma once

#include "space/space.h"

namespace pruner {

/// Returns why a candidate is not legal; empty if it is. The check is a closed form (Ansor, 4.6 and
/// 6.8). It covers threads, virtual threads, shared memory, accumulators of a thread, vectors that
/// must divide what they fetch, and the waste of tiles.
std::string gpu_problem(const Sketch& sketch, const Gpu& gpu, const Candidate& candidate);

/// Draws a candidate of sketch `id` within the limits, axis after axis; seldom not legal.
Candidate draw_gpu(const Sketch& sketch, SketchId id, const Gpu& gpu, Rng& rng);

/// Like draw_gpu(), but takes for each decision the value within the limits that is nearest to the
/// wanted value (nearest.h). Blocks too small for a warp get more threads.
Candidate nearest_on_gpu(const Sketch& sketch,
                         SketchId id,
                         const Gpu& gpu,
                         std::span<const double> wanted);

}  // namespace pruner
