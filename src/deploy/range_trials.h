// What to measure at other shapes than the tuned ones, so that kernels for a range of shapes are
// chosen by time.
#pragma once

#include <vector>

#include "deploy/module.h"
#include "graph/partition_range.h"
#include "lower/task_range.h"

namespace pruner {

/// Group g's task over a range of the network.
TaskRange task_range(const NetworkRanges& network,
                     const PartitionRange& range,
                     size_t g,
                     const Target& target,
                     const ModuleOptions& options);

/// Schedules whose times, beside those of `options`, decide which kernels build_module() makes, of
/// tasks that matter to the network's time; none where the phase has one shape. The error says for
/// which shapes of a task there is no kernel.
Result<std::vector<ShapeTrials>> shape_trials(const Phase& phase,
                                              const Target& target,
                                              const ScheduleChoice& choice,
                                              const ModuleOptions& options);

/// Leaves `most` candidates at the most: the first of each task before the second of any.
void limit_trials(std::vector<ShapeTrials>& trials, int64_t most);

}  // namespace pruner
