// pruner compile: network or operator, and records if there are any, to a module.
#include <fmt/format.h>

#include <charconv>

#include "cli/commands.h"
#include "cli/schedules.h"
#include "cli/stages.h"

namespace pruner {

/// The number of --task, checked.
static Result<size_t> task_number(const Options& options, size_t tasks) {
  size_t number = 0;
  const char* const end = options.task.data() + options.task.size();
  const auto [at, code] = std::from_chars(options.task.data(), end, number);
  if (!options.task.empty() && (code != std::errc() || at != end || number >= tasks)) {
    return Error("--task: \"", options.task, "\" is no task number; there are ", tasks, ", from 0");
  }
  return number;
}

Result<int> run_compile(const Options& options) {
  if (options.trials != 0) {
    return Error("--n-trials: compile measures nothing, so it takes 0; `pruner tune --n-trials ",
                 options.trials,
                 "` makes records for its --records");
  }
  TRY_ASSIGN(const Target target, read_target(options));
  TRY_ASSIGN(const Source source, read_source(options, target));
  TRY_ASSIGN(const std::vector<std::string> forms, read_forms(options));
  TRY_ASSIGN(const RecordedSchedules schedules, read_schedules(options, source, target));
  TRY_ASSIGN(const NearestSchedules nearest, read_nearest(options, source, target));
  NearestCounts counts;
  const ScheduleChoice choice = or_nearest(schedule_choice(schedules), nearest, counts);
  if (!options.print.empty()) {
    TRY_ASSIGN(const size_t number, task_number(options, source.tasks.size()));
    TRY_ASSIGN(const std::string text,
               print_stage(options.print, source.tasks[number].task, choice, forms));
    fmt::print("{}", text);
    return kDone;
  }
  const std::string path = options.out_file.empty() ? source.name + ".so" : options.out_file;
  TRY_ASSIGN(const ModuleSummary summary,
             build_module(source.partition,
                          target,
                          choice,
                          {.jobs = job_count(options), .work_dir = "", .forms = forms},
                          path));
  if (options.json) {
    fmt::print("{}\n",
               print_json({{"module", path},
                           {"kernels", summary.kernels},
                           {"weight_bytes", summary.weight_bytes},
                           {"activation_bytes", summary.activation_bytes},
                           {"taken_over",
                            {{"same_task", counts.same.load()}, {"near", counts.near.load()}}},
                           {"seconds", summary.seconds}}));
  } else {
    fmt::print("{}: {} kernels, {:.1f} MB of weights, {:.1f} MB of activations, {:.1f} s\n",
               path,
               summary.kernels,
               static_cast<double>(summary.weight_bytes) / 1e6,
               static_cast<double>(summary.activation_bytes) / 1e6,
               summary.seconds);
    if (counts.same + counts.near > 0) {
      fmt::print("{} kernels have schedules {}, {} of them those of a like task\n",
                 counts.same + counts.near,
                 options.pool.empty() ? "that come with the program" : "of --pool",
                 counts.near.load());
    }
  }
  return kDone;
}

}  // namespace pruner
