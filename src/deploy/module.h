// Partition + best records -> one shared library that runs the network without us: kernels, packed
// weights, memory plan and a small executor with its thread pool, or with the door to a GPU's
// driver (include/pruner/module.h).
#pragma once

#include <functional>
#include <map>
#include <string>

#include "graph/partition.h"
#include "space/space.h"
#include "tune/recorded.h"
#include "tune/tune.h"

namespace pruner {

/// Returns the candidate to build a task with; nullopt: the schedule that needs no search. Several
/// threads call it at once.
using ScheduleChoice =
    std::function<std::optional<Candidate>(const Task& task, const Space& space)>;

/// Chooses the best recorded schedule of each task. The records outlive the choice.
ScheduleChoice schedule_choice(const RecordedSchedules& schedules);
/// Chooses each task's fastest schedule that a tuner has measured. The tuner outlives the choice.
ScheduleChoice schedule_choice(const Tuner& tuner);
/// Chooses each task's second fastest schedule, if it is nearly as fast as the fastest;
/// otherwise the fastest.
ScheduleChoice runner_up_choice(const Tuner& tuner);

/// Returns the chosen candidate, or the schedule that needs no search.
Candidate chosen_schedule(const Task& task, const Space& space, const ScheduleChoice& choice);

/// Returns the measured seconds of a candidate of a task; nullopt if it was not measured. Several
/// threads call it at once.
using ScheduleTimes = std::function<std::optional<double>(
    const Task& task, const Space& space, const Candidate& candidate)>;

/// Returns the times of the records' schedules. The records outlive the times.
ScheduleTimes schedule_times(const RecordedSchedules& schedules);

struct ModuleOptions {
  int jobs = 2;          // kernels that are compiled, and constants that are packed, at once
  std::string work_dir;  // temporary files; empty: a fresh temporary folder
  std::vector<std::string> forms = {};  // forms of tasks without a record; empty: form_names()
  ScheduleTimes times = {};             // times that decide a range's kernels; empty: the draft's
  bool check = true;         // runs each kernel once before the module is written (check_kernels.h)
  std::string reports = {};  // beginning of the names of reports on wrong kernels; empty: the path
  bool flushes_denormals = true;  // a CPU's kernels take subnormal numbers for zeros
};

struct ModuleSummary {
  int kernels = 0;               // distinct kernels
  int checked_kernels = 0;       // kernels that were run and right
  int replaced_kernels = 0;      // kernels that were wrong and gave way to others
  std::string checked = {};      // pruner_module_checked()
  std::string numerics = {};     // pruner_module_numerics()
  int64_t weight_bytes = 0;      // packed, with the padding of each
  int64_t state_bytes = 0;       // states that an instance keeps from run to run
  int64_t activation_bytes = 0;  // after buffer reuse
  double seconds = 0;            // time of the whole build
};

/// Compiles each distinct group once, plans memory, packs weights and links `path`: a shared
/// library, or a static one if the path ends in .a. A static library has a header NAME.h beside it,
/// and its functions begin with NAME_ (link_module.h). Later phases read the weights as the first
/// phase packs them, if they have such schedules.
Result<ModuleSummary> build_module(std::span<const Phase> phases,
                                   const Target& target,
                                   const ScheduleChoice& choice,
                                   const ModuleOptions& options,
                                   const std::string& path);
/// Builds a module of one phase, "main".
Result<ModuleSummary> build_module(const Partition& partition,
                                   const Target& target,
                                   const ScheduleChoice& choice,
                                   const ModuleOptions& options,
                                   const std::string& path);

}  // namespace pruner
