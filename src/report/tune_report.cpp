#include "report/tune_report.h"

#include <fmt/format.h>

#include "report/time_text.h"

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

std::optional<TuneOutcome> tune_outcome(const Tuner& tuner, const TuningCurve& curve) {
  const std::optional<double> total_s = tuner.total_latency_s();
  if (!total_s || *total_s <= 0) return std::nullopt;
  TuneOutcome outcome{.total_s = *total_s};
  for (const TunedTask& tuned : tuner.tasks())
    outcome.flops += static_cast<double>(tuned.task->weight) * tuned.task->task.flops;
  const Target& target = tuner.tasks().front().task->task.target;
  outcome.peak_flops = target.is_gpu() ? target.gpu.peak_flops
                                       : target.peak_flops * static_cast<double>(target.threads);
  if (!curve.points.empty()) outcome.first = curve.points.front();
  return outcome;
}

std::string print(const TuneOutcome& outcome) {
  std::string text = time_text(outcome.total_s);
  const double rate = outcome.flops / outcome.total_s;
  if (outcome.flops > 0) text += fmt::format(", {:.2f} GFLOPS", rate / 1e9);
  if (outcome.flops > 0 && outcome.peak_flops > 0 && rate <= outcome.peak_flops)
    text += fmt::format(": {:.0f} % of the float32 peak", 100 * rate / outcome.peak_flops);
  if (outcome.first && outcome.first->latency_s > outcome.total_s)
    text += fmt::format(", {:.2f} x as fast as after {} trials ({})",
                        outcome.first->latency_s / outcome.total_s,
                        outcome.first->trials,
                        time_text(outcome.first->latency_s));
  return text;
}

std::string nothing_left(TuneEnd end, const TuneOptions& options, const Tuner& tuner) {
  if (end == TuneEnd::kTrials)
    return fmt::format("nothing left of {} trials, {} were measured before: raise --n-trials",
                       options.trials,
                       tuner.trials());
  if (end == TuneEnd::kBudget)
    return fmt::format("nothing left of {:g} s, earlier runs took {:.1f} s: raise --budget",
                       options.budget_s,
                       tuner.elapsed_s());
  return "";
}

}  // namespace pruner
