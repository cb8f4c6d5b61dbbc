#include "dataset/evaluate.h"

#include <algorithm>
#include <map>

#include "ansor/workload_table.h"

namespace pruner {
namespace {

constexpr size_t kChunk = 4096;  // programs scored at once

bool is_judged(const ProgramTable& table,
               size_t program,
               const std::optional<TrainedOn>& seen,
               Judged judged) {
  if (judged == Judged::kAll || !seen) return true;
  if (seen->has_program(table.id()[program])) return false;
  if (judged == Judged::kUnseenPrograms) return true;
  const auto task = static_cast<size_t>(table.samples()[program].task);
  return !seen->has_workload(table.tasks()[task].workload_key);
}

/// Adds each network's score; returns the tasks of the networks that have a score.
std::vector<std::vector<TaskCalls>> add_networks(const NetworkTasks& networks,
                                                 const ProgramTable& table,
                                                 std::span<const TaskMetrics> metrics,
                                                 Evaluation& evaluation) {
  std::vector<std::vector<TaskCalls>> whole;
  const std::vector<std::string> targets = table.targets();
  for (const std::string& target : targets) {
    std::map<std::string, size_t> places;  // indices in `metrics` by canonical key
    for (size_t t = 0; t < evaluation.tasks.size(); ++t) {
      const DatasetTask& task = table.tasks()[evaluation.tasks[t].task];
      if (task.target == target) places.emplace(ansor::canonical_key(task.workload_key), t);
    }
    for (const CalledNetwork& network : networks.on(target)) {
      NetworkEvaluation& of = evaluation.networks.emplace_back();
      of.name = network.name + (targets.size() > 1 ? ", " + target : "");
      of.tasks = static_cast<int64_t>(network.tasks.size());
      std::vector<TaskCalls> calls;
      for (const NetworkCall& call : network.tasks) {
        const auto key = std::ranges::find_if(
            call.keys, [&](const std::string& k) { return places.contains(k); });
        if (key == call.keys.end()) {
          ++of.missing;
        } else {
          calls.push_back({places.at(*key), call.calls});
        }
      }
      if (of.missing > 0 || calls.empty()) continue;
      of.score = network_score(metrics, calls);
      whole.push_back(std::move(calls));
    }
  }
  return whole;
}

}  // namespace

SeenCount count_seen(const ProgramTable& table, const std::optional<TrainedOn>& trained_on) {
  SeenCount count{.known = trained_on && trained_on->complete};
  std::vector<bool> known_task;
  for (const DatasetTask& task : table.tasks())
    known_task.push_back(trained_on && trained_on->has_workload(task.workload_key));
  for (size_t p = 0; p < table.size(); ++p) {
    const bool seen = trained_on && trained_on->has_program(table.id()[p]);
    const bool known = known_task[table.samples()[p].task];
    ++(seen ? count.seen : known ? count.of_known_tasks : count.of_unseen_tasks);
  }
  return count;
}

std::vector<size_t> select(const ProgramTable& table,
                           const std::optional<TrainedOn>& trained_on,
                           Judged judged) {
  std::vector<size_t> programs;
  for (size_t p = 0; p < table.size(); ++p)
    if (is_judged(table, p, trained_on, judged)) programs.push_back(p);
  return programs;
}

Result<std::vector<float>> predict_scores(LearnedModel& model,
                                          const ProgramTable& table,
                                          std::span<const size_t> programs) {
  if (programs.empty()) return Error("no program to judge the model by");
  std::vector<float> scores;
  for (size_t first = 0; first < programs.size(); first += kChunk) {
    std::vector<ProgramFeatures> chunk;
    for (const size_t p : programs.subspan(first, std::min(kChunk, programs.size() - first)))
      chunk.push_back(table.samples()[p].features);
    const std::vector<float> scored = model.predict(chunk);
    if (scored.size() != chunk.size())
      return Error("the model gives no scores that order programs");
    scores.insert(scores.end(), scored.begin(), scored.end());
  }
  return scores;
}

Result<Evaluation> evaluate(LearnedModel& model,
                            const ProgramTable& table,
                            std::span<const size_t> programs,
                            const EvaluateOptions& options) {
  TRY_ASSIGN(const std::vector<float> scores, predict_scores(model, table, programs));
  return evaluate_scores(scores, table, programs, options);
}

Evaluation evaluate_scores(std::span<const float> scores,
                           const ProgramTable& table,
                           std::span<const size_t> programs,
                           const EvaluateOptions& options) {
  std::map<int32_t, std::vector<size_t>> members;  // indices in `programs` by task
  for (size_t i = 0; i < programs.size(); ++i)
    members[table.samples()[programs[i]].task].push_back(i);
  Evaluation evaluation{.metrics = {}, .tasks = {}, .networks = {}, .keep = options.keep};
  std::vector<TaskMetrics> all;
  for (const auto& [task, places] : members) {
    std::vector<float> task_scores, labels;
    std::vector<double> latencies_s;
    for (const size_t i : places) {
      task_scores.push_back(scores[i]);
      labels.push_back(table.label(programs[i]));
      latencies_s.push_back(table.samples()[programs[i]].latency_s);
    }
    all.push_back(task_metrics(task_scores, labels, latencies_s, options.keep));
    evaluation.tasks.push_back({task, all.back()});
  }
  std::vector<std::vector<TaskCalls>> whole;
  if (options.networks != nullptr) whole = add_networks(*options.networks, table, all, evaluation);
  evaluation.weighted = !whole.empty();
  evaluation.metrics = average(all, whole);
  return evaluation;
}

std::vector<float> relative_scores(std::span<const float> scores,
                                   const ProgramTable& table,
                                   std::span<const size_t> programs) {
  std::map<int32_t, float> best;  // best score of each task
  for (size_t i = 0; i < programs.size(); ++i) {
    float& of_task = best.try_emplace(table.samples()[programs[i]].task, scores[i]).first->second;
    of_task = std::max(of_task, scores[i]);
  }
  std::vector<float> shares;
  for (size_t i = 0; i < programs.size(); ++i)
    shares.push_back(scores[i] > 0 ? scores[i] / best.at(table.samples()[programs[i]].task) : 0);
  return shares;
}

}  // namespace pruner
