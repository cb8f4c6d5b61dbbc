// How fast the machine is at this moment: multiply-adds that need nothing but the cores. A probe
// below what was seen before means that something else is running.
#pragma once

#include "pruner/kernel.h"

namespace pruner {

/// GFLOP/s of fused multiply-adds on all threads of `pool` together, over one window of `seconds`.
double fma_gflops(PrunerPool& pool, double seconds);

}  // namespace pruner
