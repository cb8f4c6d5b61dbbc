// How fast the units are that add several products of narrow numbers to each sum (DotRates), as
// fma_probe.h has it of multiply-adds.
#pragma once

#include "target/dot_rates.h"

namespace pruner {

/// GFLOP/s of a row's instruction on `threads` threads, a product and its addition counted as 2:
/// the best window of about `seconds`; 0: this CPU has no such instruction, or there are no
/// threads.
double probe_dot_gflops(const DotRateRow& row, int threads, double seconds);

}  // namespace pruner
