#include "report/task_table.h"

#include <fmt/format.h>

#include "report/time_text.h"

namespace pruner {

static std::string speed(const TaskRow& row) {
  if (!row.latency_s) return "-";
  // An unknown count shows as the reference's -0.00.
  return row.flops < 0 ? "-0.00" : fmt::format("{:.2f}", row.flops / *row.latency_s / 1e9);
}

std::string print_task_table(std::span<const TaskRow> rows) {
  std::string table = fmt::format("{0:-<70}\n{0:-<30}  [ Task Scheduler ]\n{0:-<70}\n", "");
  table += "|  ID  | Latency (ms) | Speed (GFLOPS) | Trials |\n";
  table += fmt::format("{:-<49}\n", "");
  for (size_t i = 0; i < rows.size(); ++i) {
    table += fmt::format("| {:>4} | {:>12} | {:>14} | {:>6} |\n",
                         i,
                         milliseconds_text(rows[i].latency_s),
                         speed(rows[i]),
                         rows[i].trials);
  }
  table += fmt::format("{:-<49}\n", "");
  return table;
}

std::string print_total(std::optional<double> latency_s,
                        int64_t trials,
                        double used_s,
                        int next_id) {
  return fmt::format(
      "Estimated total latency: {} ms\tTrials: {}\tUsed time : {:.0f} s\tNext ID: {}\n",
      milliseconds_text(latency_s),
      trials,
      used_s,
      next_id);
}

}  // namespace pruner
