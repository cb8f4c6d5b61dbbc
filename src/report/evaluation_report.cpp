#include "report/evaluation_report.h"

#include <fmt/format.h>

#include "report/progress.h"

namespace pruner {
namespace {

Json per_k(const PerK& values) {
  Json json = Json::object();
  for (size_t c = 0; c < kTopK.size(); ++c) json[std::to_string(kTopK[c])] = values[c];
  return json;
}

std::string row(const std::string& name, double value, std::optional<double> random = {}) {
  return random ? fmt::format("| {:<32} | {:>10.4f} | {:>8.4f} |\n", name, value, *random)
                : fmt::format("| {:<32} | {:>10.4f} | {:>8} |\n", name, value, "");
}

}  // namespace

std::string print(const Evaluation& evaluation) {
  const Metrics& m = evaluation.metrics;
  std::string text = fmt::format("{} programs of {} tasks\n", m.programs, m.tasks);
  text += fmt::format("| {:<32} | {:>10} | {:>8} |\n", "metric", "model", "random");
  text += row("RMSE", m.rmse);
  text += row("R^2", m.r2);
  text += row("pairwise comparison accuracy", m.pairwise_accuracy, 0.5);
  text += row("mape", m.mape);
  for (size_t c = 0; c < kTopK.size(); ++c)
    text += row(fmt::format("average peak score@{}", kTopK[c]), m.peak[c], m.random_peak[c]);
  for (size_t c = 0; c < kTopK.size(); ++c)
    text += row(fmt::format("top-k recall@{}", kTopK[c]), m.recall[c]);
  for (size_t c = 0; c < kTopK.size(); ++c)
    text += row(fmt::format("Top-{}, mean of tasks", kTopK[c]), m.top[c], m.random_top[c]);
  for (size_t c = 0; c < kTopK.size(); ++c)
    text += row(
        fmt::format("Top-{}, sum over tasks", kTopK[c]), m.pooled_top[c], m.random_pooled_top[c]);
  return text;
}

Json to_json(const Evaluation& evaluation, const ProgramTable& table) {
  const Metrics& m = evaluation.metrics;
  Json tasks = Json::array();
  for (const TaskEvaluation& task : evaluation.tasks) {
    const DatasetTask& of = table.tasks()[static_cast<size_t>(task.task)];
    const TaskMetrics& t = task.metrics;
    tasks.push_back({{"workload_key", of.workload_key},
                     {"target", of.target},
                     {"programs", t.programs},
                     {"pairwise_accuracy", t.pairwise_accuracy},
                     {"peak", per_k(t.peak)},
                     {"best_s", t.best_s},
                     {"top_s", per_k(t.top_s)},
                     {"random_peak", per_k(t.random_peak)},
                     {"random_top_s", per_k(t.random_top_s)}});
  }
  return {{"programs", m.programs},
          {"rmse", m.rmse},
          {"r2", m.r2},
          {"pairwise_accuracy", m.pairwise_accuracy},
          {"mape", m.mape},
          {"peak", per_k(m.peak)},
          {"recall", per_k(m.recall)},
          {"top", per_k(m.top)},
          {"pooled_top", per_k(m.pooled_top)},
          {"random",
           {{"peak", per_k(m.random_peak)},
            {"top", per_k(m.random_top)},
            {"pooled_top", per_k(m.random_pooled_top)}}},
          {"tasks", tasks}};
}

std::string print(const SeenCount& seen) {
  if (!seen.known && seen.seen == 0 && seen.of_known_tasks == 0)
    return "the model's file does not say what it was trained on";
  const std::string counts =
      fmt::format("{} programs seen in training, {} others of their workloads, {} of others",
                  seen.seen,
                  seen.of_known_tasks,
                  seen.of_unseen_tasks);
  return seen.known ? counts
                    : counts + "; it began from weights whose training programs are not known";
}

std::string print(const LeftOut& left_out) {
  std::string text;
  const auto add = [&](int64_t count, const char* what) {
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, what);
  };
  add(left_out.failed, "failed trials");
  add(left_out.bad_time, "programs without a time");
  add(left_out.twice, "programs that stand there twice");
  add(left_out.no_feature, "programs without features");
  return text;
}

std::string print(const PretrainProgress& p) {
  std::string text = fmt::format("{:>3}/{}: loss {:.4f}", p.step, p.steps, p.loss);
  if (p.validation_loss)
    text += fmt::format(", validation {:.4f} (pairwise accuracy {:.4f})",
                        *p.validation_loss,
                        p.validation_accuracy.value_or(0));
  return text + fmt::format("; {}, ETA {}", clock_text(p.seconds), clock_text(p.eta_s));
}

}  // namespace pruner
