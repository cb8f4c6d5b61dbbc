// A model and measured programs -> how well it orders them, each task for itself, and what that is
// worth to networks.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "dataset/network_set.h"
#include "dataset/program_table.h"
#include "model/learned_model.h"
#include "model/metrics.h"

namespace pruner {

/// What a model may be judged by.
enum class Judged {
  kUnseenPrograms,  // that it was not trained on
  kUnseenTasks,     // of workloads that it was not trained on, on any target
  kAll,
};

/// How many of the table's programs a model has seen.
struct SeenCount {
  bool known = false;           // whether the model's file says what it was trained on, all of it
  int64_t seen = 0;             // trained on
  int64_t of_known_tasks = 0;   // not trained on, but others of the same workload
  int64_t of_unseen_tasks = 0;  // of workloads that it has not seen
};
SeenCount count_seen(const ProgramTable& table, const std::optional<TrainedOn>& trained_on);

/// The programs to judge by, ascending.
std::vector<size_t> select(const ProgramTable& table,
                           const std::optional<TrainedOn>& trained_on,
                           Judged judged);

struct TaskEvaluation {
  int32_t task = 0;
  TaskMetrics metrics;
};
struct NetworkEvaluation {
  std::string name;                   // with the target, where there are several
  int64_t tasks = 0, missing = 0;     // of which no program is judged
  std::optional<NetworkScore> score;  // where none is missing
};
struct Evaluation {
  /// Top-k and Best-k are of the networks that have a score, where there are any.
  Metrics metrics;
  std::vector<TaskEvaluation> tasks;
  std::vector<NetworkEvaluation> networks;
  int64_t keep = 0;       // programs of a task that Best-k keeps
  bool weighted = false;  // by how often networks call the tasks
};

struct EvaluateOptions {
  const NetworkTasks* networks = nullptr;  // that have scores of their own
  int64_t keep = 0;                        // 0: no Best-k
};

/// A model's score of each program. Errors: no program; the model has nothing to say, or not a
/// number.
Result<std::vector<float>> predict_scores(LearnedModel& model,
                                          const ProgramTable& table,
                                          std::span<const size_t> programs);
/// evaluate_scores() of predict_scores().
Result<Evaluation> evaluate(LearnedModel& model,
                            const ProgramTable& table,
                            std::span<const size_t> programs,
                            const EvaluateOptions& options = {});
/// `scores`: one a program of `programs`.
Evaluation evaluate_scores(std::span<const float> scores,
                           const ProgramTable& table,
                           std::span<const size_t> programs,
                           const EvaluateOptions& options = {});

/// Scores of any unit, at least 0 -> of each task the shares of its best, as labels are; their
/// order stays.
std::vector<float> relative_scores(std::span<const float> scores,
                                   const ProgramTable& table,
                                   std::span<const size_t> programs);

}  // namespace pruner
