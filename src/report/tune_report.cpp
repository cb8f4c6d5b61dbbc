#include "report/tune_report.h"

namespace pruner {

std::vector<TaskRow> task_rows(const Tuner& tuner) {
  std::vector<TaskRow> rows;
  for (const TunedTask& tuned : tuner.tasks()) {
    TaskRow& row =
        rows.emplace_back(TaskRow{.flops = tuned.task->task.flops, .trials = tuned.trials});
    if (tuned.history.best_cost_s() < kWorstCost) row.latency_s = tuned.history.best_cost_s();
  }
  return rows;
}

std::string_view print(TuneEnd end) {
  switch (end) {
    case TuneEnd::kTrials: return "trials";
    case TuneEnd::kBudget: return "budget";
    case TuneEnd::kEarlyStopping: return "early stopping";
    case TuneEnd::kNothingLeft: return "nothing left to try";
    case TuneEnd::kInterrupted: return "interrupted";
  }
  return "";
}

Json tune_summary(const Tuner& tuner, TuneEnd end) {
  Json tasks = Json::array();
  const std::vector<TaskRow> rows = task_rows(tuner);
  for (size_t i = 0; i < rows.size(); ++i) {
    const TunedTask& tuned = tuner.tasks()[i];
    Json task = {{"id", i},
                 {"name", tuned.task->task.name},
                 {"key", tuned.task->task.key},
                 {"weight", tuned.task->weight},
                 {"latency_ms", nullptr},
                 {"gflops", nullptr},
                 {"trials", tuned.trials},
                 {"failed", tuned.failed}};
    if (rows[i].latency_s) task["latency_ms"] = *rows[i].latency_s * 1e3;
    if (rows[i].latency_s && rows[i].flops > 0)
      task["gflops"] = rows[i].flops / *rows[i].latency_s / 1e9;
    tasks.push_back(std::move(task));
  }
  const std::optional<double> latency_s = tuner.total_latency_s();
  return {{"end", print(end)},
          {"estimated_total_latency_ms", latency_s ? Json(*latency_s * 1e3) : Json()},
          {"trials", tuner.trials()},
          {"used_s", tuner.elapsed_s()},
          {"tasks", std::move(tasks)}};
}

}  // namespace pruner
