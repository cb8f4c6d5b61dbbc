// Finds the trials at other shapes than the tuned ones that let kernels for a range of shapes be
// chosen by time.
#pragma once

#include <vector>

#include "deploy/module.h"
#include "graph/partition_range.h"
#include "lower/task_range.h"

namespace pruner {

/// Returns group g's task over a range of the network.
TaskRange task_range(const NetworkRanges& network,
                     const PartitionRange& range,
                     size_t g,
                     const Target& target,
                     const ModuleOptions& options);

/// Returns schedules whose times, beside those of `options`, decide which kernels build_module()
/// makes. The tasks are those that matter to the network's time; none if the phase has one shape.
/// The error names the shapes of a task without a kernel.
Result<std::vector<ShapeTrials>> shape_trials(const Phase& phase,
                                              const Target& target,
                                              const ScheduleChoice& choice,
                                              const ModuleOptions& options);

/// Keeps at most `most` candidates: the first of each task before the second of any.
void limit_trials(std::vector<ShapeTrials>& trials, int64_t most);

}  // namespace pruner
