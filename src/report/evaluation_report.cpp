#include "report/evaluation_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/scatter_svg.h"
#include "report/time_text.h"

namespace pruner {
namespace {

template <size_t N>
Json by_k(const std::array<int, N>& of, const std::array<double, N>& values) {
  Json json = Json::object();
  for (size_t c = 0; c < N; ++c) json[std::to_string(of[c])] = values[c];
  return json;
}
Json per_k(const PerK& values) { return by_k(kTopK, values); }
Json per_k(const PerBestK& values) { return by_k(kBestK, values); }

Json network_json(const NetworkScore& score, int64_t keep) {
  Json json = {{"top", per_k(score.top)}, {"random_top", per_k(score.random_top)}};
  if (keep == 0) return json;
  json["best_k"] = per_k(score.best_k);
  json["random_best_k"] = per_k(score.random_best_k);
  return json;
}

/// Explains the weights of the tasks in Top-k.
std::string weights_line(const Evaluation& evaluation) {
  if (evaluation.networks.empty()) return "Top-k: every task counts once\n";
  if (!evaluation.weighted)
    return "Top-k: every task counts once: no network has all of its tasks among those judged\n";
  return "Top-k: of the networks with all of their tasks, each as often as it is called\n";
}

std::string network_table(const Evaluation& evaluation) {
  if (evaluation.networks.empty()) return {};
  std::string text = fmt::format("| {:<32} | {:>7} |", "network", "tasks");
  for (const int k : kTopK)
    text += fmt::format(" {:>7} | {:>7} |", fmt::format("Top-{}", k), "random");
  text += "\n";
  for (const NetworkEvaluation& network : evaluation.networks) {
    text += fmt::format("| {:<32} | {:>7} |",
                        network.name,
                        fmt::format("{}/{}", network.tasks - network.missing, network.tasks));
    for (size_t c = 0; c < kTopK.size(); ++c) {
      text += network.score ? fmt::format(" {:>7.4f} | {:>7.4f} |",
                                          network.score->top[c],
                                          network.score->random_top[c])
                            : fmt::format(" {:>7} | {:>7} |", "-", "-");
    }
    text += "\n";
  }
  return text;
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
  const char* each = evaluation.weighted ? "mean of networks" : "mean of tasks";
  const char* all = evaluation.weighted ? "sum over networks" : "sum over tasks";
  for (size_t c = 0; c < kTopK.size(); ++c)
    text += row(fmt::format("Top-{}, {}", kTopK[c], each), m.top[c], m.random_top[c]);
  for (size_t c = 0; c < kTopK.size(); ++c)
    text += row(fmt::format("Top-{}, {}", kTopK[c], all), m.pooled.top[c], m.pooled.random_top[c]);
  if (m.best_k_tasks > 0) {
    for (size_t c = 0; c < kBestK.size() && kBestK[c] <= evaluation.keep; ++c)
      text += row(fmt::format("Best-{} of {}, {}", kBestK[c], evaluation.keep, each),
                  m.best_k[c],
                  m.random_best_k[c]);
    for (size_t c = 0; c < kBestK.size() && kBestK[c] <= evaluation.keep; ++c)
      text += row(fmt::format("Best-{} of {}, {}", kBestK[c], evaluation.keep, all),
                  m.pooled.best_k[c],
                  m.pooled.random_best_k[c]);
  }
  text += weights_line(evaluation);
  if (evaluation.keep > 0 && !evaluation.weighted)
    text +=
        fmt::format("Best-k: {} tasks of more than {} programs\n", m.best_k_tasks, evaluation.keep);
  return text + network_table(evaluation);
}

Json to_json(const Evaluation& evaluation, const ProgramTable& table) {
  const Metrics& m = evaluation.metrics;
  Json tasks = Json::array();
  for (const TaskEvaluation& task : evaluation.tasks) {
    const DatasetTask& of = table.tasks()[task.task];
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
    if (evaluation.keep == 0) continue;
    tasks.back()["best_k_s"] = per_k(t.best_k_s);
    tasks.back()["random_best_k_s"] = per_k(t.random_best_k_s);
  }
  Json networks = Json::array();
  for (const NetworkEvaluation& network : evaluation.networks) {
    Json& entry = networks.emplace_back();
    entry = {{"network", network.name}, {"tasks", network.tasks}, {"missing", network.missing}};
    if (network.score) entry.update(network_json(*network.score, evaluation.keep));
  }
  Json json = {{"programs", m.programs},
               {"rmse", m.rmse},
               {"r2", m.r2},
               {"pairwise_accuracy", m.pairwise_accuracy},
               {"mape", m.mape},
               {"peak", per_k(m.peak)},
               {"recall", per_k(m.recall)},
               {"top", per_k(m.top)},
               {"pooled_top", per_k(m.pooled.top)},
               {"random",
                {{"peak", per_k(m.random_peak)},
                 {"top", per_k(m.random_top)},
                 {"pooled_top", per_k(m.pooled.random_top)}}},
               {"weighted", evaluation.weighted},
               {"networks", networks},
               {"tasks", tasks}};
  if (m.best_k_tasks == 0) return json;
  json["kept"] = evaluation.keep;
  json["best_k_tasks"] = m.best_k_tasks;
  json["best_k"] = per_k(m.best_k);
  json["pooled_best_k"] = per_k(m.pooled.best_k);
  json["random"]["best_k"] = per_k(m.random_best_k);
  json["random"]["pooled_best_k"] = per_k(m.pooled.random_best_k);
  return json;
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
  const TrainingPoint& now = p.now;
  std::string text = fmt::format("{:>3}/{}: loss {:.4f}", now.step, p.steps, now.loss);
  if (now.validation_loss)
    text += fmt::format(", validation {:.4f} (pairwise accuracy {:.4f})",
                        *now.validation_loss,
                        now.validation_accuracy.value_or(0));
  if (now.learning_rate) text += fmt::format(", learning rate {:.2e}", *now.learning_rate);
  return text + fmt::format("; {}, ETA {}", clock_text(p.seconds), clock_text(p.eta_s));
}

std::string evaluation_svg(std::span<const float> scores,
                           const ProgramTable& table,
                           std::span<const size_t> programs,
                           const std::string& title) {
  const auto task_of = [&](size_t i) { return table.samples()[programs[i]].task; };
  std::map<int32_t, std::pair<float, float>> ranges;  // least and greatest score, by task
  for (size_t i = 0; i < programs.size(); ++i) {
    auto& [least, most] = ranges.try_emplace(task_of(i), scores[i], scores[i]).first->second;
    least = std::min(least, scores[i]);
    most = std::max(most, scores[i]);
  }
  ScatterPlot plot{.title = title,
                   .x_name = "measured: the task's best latency / the program's",
                   .y_name = "predicted: 0 is the task's lowest score, 1 its highest",
                   .series = {},
                   .diagonal = true};
  ScatterSeries& series = plot.series.emplace_back(
      ScatterSeries{fmt::format("{} programs of {} tasks", programs.size(), ranges.size()), {}});
  for (size_t i = 0; i < programs.size(); ++i) {
    const auto [least, most] = ranges.at(task_of(i));
    if (most > least)
      series.points.emplace_back(table.label(programs[i]), (scores[i] - least) / (most - least));
  }
  return scatter_svg(plot);
}

}  // namespace pruner
