#include "deploy/range_trials.h"

#include <algorithm>
#include <map>
#include <optional>

#include "analysis/draft.h"
#include "deploy/range_kernels.h"
#include "search/search.h"
#include "support/parallel_for.h"

namespace pruner {
namespace {

// A task's schedules are compared if it takes at least `kLeastShare` of the time of all tasks.
constexpr double kLeastShare = 0.02;

/// Holds the groups of one task.
struct Alike {
  const PartitionRange* range;
  size_t group;        // one of them
  double seconds = 0;  // time of all groups at the greatest shape, by the draft
};

double drafted_s(const Group& group, const Target& target, std::span<const std::string> forms) {
  const Task task = make_task(group.dag, target, group.name);
  const Space space = make_space(task, forms);
  return draft_latency_s(make_loop_nest(space, default_schedule(task, space)), target);
}

/// Returns the tasks of all ranges that take a share of the time.
std::vector<Alike> tasks_of(const NetworkRanges& network,
                            const Target& target,
                            std::span<const std::string> forms) {
  std::vector<Alike> tasks;
  double all_s = 0;
  for (const PartitionRange& range : network.ranges) {
    std::map<std::string, std::pair<size_t, double>> known;  // its index, seconds of one group
    for (size_t g = 0; g < range.largest.groups.size(); ++g) {
      const Group& group = range.largest.groups[g];
      if (group.routine != nullptr) continue;
      const std::string key = workload_key(range.dags[g].at(range.box.min)) + group.key;
      const auto [at, is_new] = known.try_emplace(key, tasks.size(), 0);
      auto& [place, seconds] = at->second;
      if (is_new) {
        seconds = drafted_s(group, target, forms);
        tasks.push_back({&range, g});
      }
      tasks[place].seconds += seconds;
      all_s += seconds;
    }
  }
  std::erase_if(tasks, [&](const Alike& task) { return task.seconds < kLeastShare * all_s; });
  return tasks;
}

}  // namespace

TaskRange task_range(const NetworkRanges& network,
                     const PartitionRange& range,
                     size_t g,
                     const Target& target,
                     const ModuleOptions& options) {
  return TaskRange(network.symbols,
                   range.box,
                   range.dags[g],
                   target,
                   range.largest.groups[g].name,
                   options.forms);
}

Result<std::vector<ShapeTrials>> shape_trials(const Phase& phase,
                                              const Target& target,
                                              const ScheduleChoice& choice,
                                              const ModuleOptions& options) {
  if (phase.ranges == nullptr) return std::vector<ShapeTrials>();
  const std::vector<Alike> tasks = tasks_of(*phase.ranges, target, options.forms);
  std::vector<std::optional<Result<std::vector<ShapeTrials>>>> of_tasks(tasks.size());
  parallel_for(std::ssize(tasks), options.jobs, [&](int64_t i) {
    const auto& [range, g, seconds] = tasks[static_cast<size_t>(i)];
    TaskRange task = task_range(*phase.ranges, *range, g, target, options);
    of_tasks[static_cast<size_t>(i)] = contenders(task, choice, options.times);
  });
  std::vector<ShapeTrials> trials;
  for (std::optional<Result<std::vector<ShapeTrials>>>& of_task : of_tasks) {
    if (!of_task->ok()) return of_task->error();
    std::ranges::move(**of_task, std::back_inserter(trials));
  }
  return trials;
}

void limit_trials(std::vector<ShapeTrials>& trials, int64_t most) {
  size_t deepest = 0;
  for (const ShapeTrials& task : trials) deepest = std::max(deepest, task.candidates.size());
  std::vector<size_t> kept(trials.size(), 0);
  for (size_t n = 0; n < deepest; ++n)
    for (size_t t = 0; t < trials.size(); ++t)
      if (trials[t].candidates.size() > n && most-- > 0) ++kept[t];
  for (size_t t = 0; t < trials.size(); ++t) trials[t].candidates.resize(kept[t]);
  std::erase_if(trials, [](const ShapeTrials& task) { return task.candidates.empty(); });
}

}  // namespace pruner
