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

/// The candidate to build a task with; nullopt: the schedule that needs no search. Called from
/// several threads at once.
using ScheduleChoice =
    std::function<std::optional<Candidate>(const Task& task, const Space& space)>;

/// The best recorded schedule of each task. The records outlive the choice.
ScheduleChoice schedule_choice(const RecordedSchedules& schedules);
/// The fastest that a tuner has measured of each task. The tuner outlives the choice.
ScheduleChoice schedule_choice(const Tuner& tuner);

/// The chosen candidate, or the schedule that needs no search.
Candidate chosen_schedule(const Task& task, const Space& space, const ScheduleChoice& choice);

/// Seconds that a candidate of a task was measured to take; nullopt: it was not. Called from
/// several threads at once.
using ScheduleTimes = std::function<std::optional<double>(
    const Task& task, const Space& space, const Candidate& candidate)>;

/// Of the records' schedules. The records outlive the times.
ScheduleTimes schedule_times(const RecordedSchedules& schedules);

struct ModuleOptions {
  int jobs = 2;          // kernels that are compiled, and constants that are packed, at once
  std::string work_dir;  // temporary files; empty: a fresh temporary folder
  std::vector<std::string> forms = {};  // of tasks without a record (form_names()); empty: all
  ScheduleTimes times = {};  // by which kernels of a range of shapes are chosen; empty: the draft
  bool check = true;         // runs each kernel once before the module is written (check_kernels.h)
  std::string reports = {};  // beginning of the names of reports on wrong kernels; empty: the path
  bool flushes_denormals = true;  // a CPU's kernels take subnormal numbers for zeros
};

struct ModuleSummary {
  int kernels = 0;               // distinct ones
  int checked_kernels = 0;       // kernels that were run and right
  int replaced_kernels = 0;      // kernels that were wrong and gave way to others
  std::string checked = {};      // pruner_module_checked()
  std::string numerics = {};     // pruner_module_numerics()
  int64_t weight_bytes = 0;      // packed, with the padding of each
  int64_t state_bytes = 0;       // that an instance keeps from run to run
  int64_t activation_bytes = 0;  // after buffer reuse
  double seconds = 0;            // of the whole build
};

/// Compiles every group (distinct ones once), plans memory, packs weights and links `path`: a
/// shared library, or of a path that ends in .a a static one with its header NAME.h beside it,
/// whose functions begin with NAME_ (link_module.h). Later phases read the weights as the first one
/// packs them, where a schedule does.
Result<ModuleSummary> build_module(std::span<const Phase> phases,
                                   const Target& target,
                                   const ScheduleChoice& choice,
                                   const ModuleOptions& options,
                                   const std::string& path);
/// Of one phase, "main".
Result<ModuleSummary> build_module(const Partition& partition,
                                   const Target& target,
                                   const ScheduleChoice& choice,
                                   const ModuleOptions& options,
                                   const std::string& path);

}  // namespace pruner
