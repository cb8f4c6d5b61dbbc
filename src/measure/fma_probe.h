// How fast the machine is at this moment: multiply-adds that need nothing but the cores. A probe
// below what was seen before means that something else is running.
#pragma once

#include "pruner/kernel.h"

namespace pruner {

/// How often in a second all threads of `pool` together run `block`, over one window of `seconds`.
/// It takes a number near 1, and gives one that depends on all that it computes.
double blocks_per_second(PrunerPool& pool, float (*block)(float), double seconds);

/// GFLOP/s of fused multiply-adds on all threads of `pool` together, over one window of `seconds`.
double fma_gflops(PrunerPool& pool, double seconds);

}  // namespace pruner
