#include "report/kernel_notes.h"

#include <fmt/format.h>

#include <map>

namespace pruner {

std::vector<NotedKernel> kernel_notes(const Source& source,
                                      std::span<const std::optional<double>> best_s) {
  std::map<std::string, size_t> task_of;  // index of a task by key
  double total_s = 0;
  for (size_t t = 0; t < source.tasks.size(); ++t) {
    task_of[source.tasks[t].task.key] = t;
    total_s += source.tasks[t].weight * best_s[t].value_or(0);
  }
  std::vector<NotedKernel> notes;
  for (const Phase& phase : source.phases) {
    for (const Group& group : phase.partition.groups) {
      const auto task = group.complex ? task_of.find(group.key) : task_of.end();
      std::string note = "a kernel without a task: " + group.name;
      if (task != task_of.end()) {
        const WeightedTask& weighted = source.tasks[task->second];
        note = fmt::format(
            "task {}: {}, called {} x", task->second, weighted.task.name, weighted.weight);
        if (const std::optional<double> s = best_s[task->second])
          note += fmt::format("; {:.4g} ms a call, {:.1f} % of the time of all tasks",
                              *s * 1e3,
                              100 * *s / total_s);
      }
      notes.push_back({group.nodes, std::move(note)});
    }
  }
  return notes;
}

}  // namespace pruner
