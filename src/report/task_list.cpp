#include "report/task_list.h"

#include <fmt/format.h>

namespace pruner {

std::string print_task_list(std::span<const WeightedTask> tasks) {
  std::string list = "|  ID  | Weight |        FLOPs | Task\n";
  int weight = 0;
  double flops = 0;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const Task& task = tasks[i].task;
    const std::string count = task.flops < 0 ? "-" : fmt::format("{:.0f}", task.flops);
    list += fmt::format("| {:>4} | {:>6} | {:>12} | {}\n", i, tasks[i].weight, count, task.name);
    weight += tasks[i].weight;
    flops += std::max(task.flops, 0.0) * tasks[i].weight;
  }
  list += fmt::format(
      "{} tasks, sum of weights {}, {:.3f} GFLOP in all\n", tasks.size(), weight, flops / 1e9);
  return list;
}

Json task_list_json(std::span<const WeightedTask> tasks) {
  Json list = Json::array();
  for (const WeightedTask& weighted : tasks) {
    const Task& task = weighted.task;
    list.push_back({{"id", list.size()},
                    {"weight", weighted.weight},
                    {"flops", task.flops < 0 ? Json() : Json(task.flops)},
                    {"name", task.name},
                    {"key", task.key}});
  }
  return list;
}

}  // namespace pruner
