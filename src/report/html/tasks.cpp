#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "report/html/chart.h"
#include "report/html/sections.h"
#include "report/html/table.h"
#include "report/time_text.h"

namespace pruner {

std::optional<double> TaskFacts::time_s() const {
  return best_s ? std::optional(weight * *best_s) : std::nullopt;
}

std::optional<double> least_s(const TaskFacts& task, const Ceiling& ceiling) {
  const auto unit = ceiling.unit_gflops.find(task.precision);
  const bool narrow = !task.precision.empty() && task.precision != "float32";
  const double gflops = unit != ceiling.unit_gflops.end() ? unit->second
                        : narrow                          ? 0
                                                          : ceiling.gflops;
  if (gflops <= 0 || ceiling.bandwidth_gbs <= 0 || task.flops < 0) return std::nullopt;
  return std::max(task.flops / gflops, task.bytes / ceiling.bandwidth_gbs) / 1e9;
}

std::vector<size_t> by_time(std::span<const TaskFacts> tasks) {
  std::vector<size_t> order(tasks.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(
      order, std::greater(), [&](size_t t) { return tasks[t].time_s().value_or(-1); });
  return order;
}

HtmlSection tasks_section(std::span<const TaskFacts> tasks, const Ceiling& ceiling) {
  double total_s = 0;
  for (const TaskFacts& task : tasks) total_s += task.time_s().value_or(0);
  HtmlTable table{.heads = {{"ID", true},
                            {"Task"},
                            {"Calls", true},
                            {"Share of time", true},
                            {"Before", true},
                            {"Best", true},
                            {"GFLOP/s", true},
                            {"Of the ceiling", true},
                            {"Trials", true},
                            {"Failed", true}},
                  .rows = {}};
  for (const size_t t : by_time(tasks)) {
    const TaskFacts& task = tasks[t];
    const std::optional<double> least = least_s(task, ceiling);
    const std::optional<double> time = task.time_s();
    std::optional<double> share, of_ceiling;
    if (time && total_s > 0) share = *time / total_s;
    if (least && task.best_s) of_ceiling = *least / *task.best_s;
    table.rows.push_back(
        {std::to_string(t),
         task.name,
         std::to_string(task.weight),
         percent(share),
         time_text(task.untuned_s),
         time_text(task.best_s),
         task.best_s && task.flops > 0 ? short_number(task.flops / *task.best_s / 1e9) : "-",
         percent(of_ceiling),
         std::to_string(task.trials),
         std::to_string(task.failed)});
  }
  return section(
      "tasks",
      "Tasks",
      "Times are of one call; the share is of all calls together. Before is the schedule "
      "that needs no search, where it was measured. The ceiling is the roofline's, below.",
      html_table(table, "Tasks"));
}

}  // namespace pruner
