// The GPU half of space.h: what make_loop_nest(), is_legal() and sample() do for a GPU's sketch.
#pragma once

#include "space/space.h"

namespace pruner {

/// Why a candidate is not legal; empty: it is. Closed form (Ansor, 4.6 and 6.8): threads, virtual
/// threads, shared memory, accumulators of a thread, vectors that divide what they fetch, tiles
/// that waste little.
std::string gpu_problem(const Sketch& sketch, const Gpu& gpu, const Candidate& candidate);

/// Draws a candidate of sketch `id` within the limits, axis after axis; seldom not legal.
Candidate draw_gpu(const Sketch& sketch, SketchId id, const Gpu& gpu, Rng& rng);

/// The same with, for each decision, of the values within the limits the one nearest to what is
/// wanted of it (nearest.h) in place of a drawn one. Blocks too small for a warp get more threads.
Candidate nearest_on_gpu(const Sketch& sketch,
                         SketchId id,
                         const Gpu& gpu,
                         std::span<const double> wanted);

}  // namespace pruner
