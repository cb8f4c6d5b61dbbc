// The end of a tuning run: its table, and its summary as JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/task_table.h"
#include "support/json.h"
#include "tune/tune.h"

namespace pruner {

/// A row for each task, in the order of the IDs.
std::vector<TaskRow> task_rows(const Tuner& tuner);

/// "trials", "budget", "early stopping", ...
std::string_view print(TuneEnd end);

/// {"end","estimated_total_latency_ms","trials","used_s","tasks":[{"id","name","key","weight",
/// "latency_ms","gflops","trials","failed"}]}; null where nothing is known.
Json tune_summary(const Tuner& tuner, TuneEnd end);

}  // namespace pruner
