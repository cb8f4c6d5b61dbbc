// This machine's GPU -> a target with its rates, by kernels of our own and the driver's events.
#pragma once

#include "support/result.h"
#include "target/target.h"

namespace pruner {

/// `target` with what the first device of its backend does in place of what is typical: units,
/// clock, peak, bandwidths of memory, L2 and shared memory, size of L2, launch cost, rates of
/// tensor cores (tensor_probe.h); its source says so. Each timing takes a quarter of `seconds`.
/// Errors: no driver, no device, no NVRTC, a device whose events tell no time.
Result<Target> probe_gpu(Target target, double seconds);

}  // namespace pruner
