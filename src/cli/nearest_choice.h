// Records of other tasks -> schedules for tasks without a record. `pruner compile` takes these
// schedules, and so does the untuned module that `pruner tune` races its own modules with.
#pragma once

#include <atomic>

#include "deploy/module.h"
#include "transfer/nearest.h"

namespace pruner {

/// Counts the kernels that took a schedule from records that were not given for them: of their own
/// task, or of a like task.
struct NearestCounts {
  std::atomic<int> same{0}, near{0};
};

/// Chooses by `nearest`, which chooses nothing for a task whose default is the better guess.
/// `counts`, if given, outlives the result.
ScheduleChoice nearest_choice(NearestSchedules nearest, NearestCounts* counts = nullptr);

}  // namespace pruner
