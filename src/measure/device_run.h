// The inside of the child process that runs one candidate on a device of its own memory (OpenCL):
// what run_kernel() is for CPUs. The driver is first asked for here, in the child: neither it nor
// its threads outlive a fork.
#pragma once

#include "measure/kernel_run.h"

namespace pruner {

/// Builds and runs `artifact` and fills `report`. Times are the device's own; `best_s` as in
/// Measurer::measure.
void run_on_device(const Workload& workload,
                   const Artifact& artifact,
                   const MeasureOptions& options,
                   double best_s,
                   RunReport& report);

}  // namespace pruner
