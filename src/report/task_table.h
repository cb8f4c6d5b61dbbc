// The task table of a tuning run, in the form of the reference's task scheduler.
#pragma once

#include <optional>
#include <span>
#include <string>

namespace pruner {

/// A line of the table.
struct TaskRow {
  std::optional<double> latency_s = {};  // best time; nullopt: no valid trial yet
  double flops = 0;                      // negative: unknown
  int64_t trials = 0;
};

/// The table with its header: ID, Latency (ms), Speed (GFLOPS), Trials.
std::string print_task_table(std::span<const TaskRow> rows);

/// "Estimated total latency: 1.476 ms\tTrials: 2000\tUsed time : 5563 s\tNext ID: -1".
std::string print_total(std::optional<double> latency_s,
                        int64_t trials,
                        double used_s,
                        int next_id);

}  // namespace pruner
