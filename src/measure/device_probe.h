// A device as measured now: its target with the rates and the launch cost that the analysis reads.
#pragma once

#include "support/result.h"
#include "target/target.h"

namespace pruner {

/// `target` with what this machine does in place of what is typical: peak, rates of products of
/// narrow numbers, bandwidth of each level and launch cost; its source says so. Of a CPU, peak,
/// memory and each kind of products take about `seconds` each, the others a quarter. Of a GPU it is
/// the first device (gpu_probe.h). The error says why it cannot be measured here.
Result<Target> probe_device(const Target& target, double seconds);

/// Seconds from the start of a parallel loop until all threads have run a part of it and the caller
/// goes on: the median of what `seconds` allow; 0 when there are no threads.
double probe_fork_join_s(int threads, double seconds);

}  // namespace pruner
