// This machine's OpenCL device -> a target with its rates, by kernels of our own and their events.
#pragma once

#include "support/result.h"
#include "target/target.h"

namespace pruner {

/// `target` with what the device does in place of what is typical: compute units, clock, peak,
/// bandwidths of memory, L2 and shared memory, launch cost; its source says so. Each timing takes a
/// quarter of `seconds`. Errors: no driver, no device, a device whose events tell no time.
Result<Target> probe_opencl(Target target, double seconds);

}  // namespace pruner
