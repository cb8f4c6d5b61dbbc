// --records -> the schedule that each task of a source is built with.
#pragma once

#include <atomic>
#include <vector>

#include "cli/source.h"
#include "deploy/module.h"
#include "transfer/nearest.h"
#include "tune/recorded.h"
#include "tune/tune.h"

namespace pruner {

/// The best schedules of record files for the source's tasks; empty without any. No record of
/// this device, or none of these tasks, is an error; some that are of others, a warning.
Result<RecordedSchedules> read_schedules(const std::vector<std::string>& named,
                                         int jobs,
                                         const Source& source,
                                         const Target& target);

void add_forms(CLI::App& app, std::string& forms);
/// --forms as a list; the error names a form that there is not.
Result<std::vector<std::string>> read_forms(const std::string& text);

/// The choice that a module is built by.
ScheduleChoice schedule_choice(const RecordedSchedules& schedules);
/// ... by the fastest that a tuner has measured of each task.
ScheduleChoice schedule_choice(const Tuner& tuner);

/// How many kernels took the schedule of a like task, or of their own, from records that were not
/// given for them.
struct NearestCounts {
  std::atomic<int> same{0}, near{0};
};
/// ... and by `nearest` where `choice` has nothing; both and `counts` outlive the result.
ScheduleChoice or_nearest(ScheduleChoice choice,
                          const NearestSchedules& nearest,
                          NearestCounts& counts);

}  // namespace pruner
