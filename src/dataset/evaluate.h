// Evaluates how well a model orders measured programs, each task for itself, and the worth of this
// order to networks.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "dataset/network_set.h"
#include "dataset/program_table.h"
#include "model/learned_model.h"
#include "model/metrics.h"

namespace pruner {

/// `Judged` selects the programs that judge a model.
enum class Judged {
  kUnseenPrograms,  // programs that the model was not trained on
  kUnseenTasks,     // programs of workloads without training programs on any target
  kAll,
};

/// `SeenCount` counts the table's programs by whether a model has seen them.
struct SeenCount {
  bool known = false;           // whether the model's file lists all training programs
  int64_t seen = 0;             // programs that the model was trained on
  int64_t of_known_tasks = 0;   // other programs of workloads that the model was trained on
  int64_t of_unseen_tasks = 0;  // programs of workloads that the model has not seen
};
SeenCount count_seen(const ProgramTable& table, const std::optional<TrainedOn>& trained_on);

/// Returns the programs to judge by, ascending.
std::vector<size_t> select(const ProgramTable& table,
                           const std::optional<TrainedOn>& trained_on,
                           Judged judged);

struct TaskEvaluation {
  int32_t task = 0;
  TaskMetrics metrics;
};
struct NetworkEvaluation {
  std::string name;                   // with the target if there are several
  int64_t tasks = 0, missing = 0;     // missing: tasks without a judged program
  std::optional<NetworkScore> score;  // nullopt if a task is missing
};
struct Evaluation {
  /// Top-k and Best-k average the networks that have a score, if there are any.
  Metrics metrics;
  std::vector<TaskEvaluation> tasks;
  std::vector<NetworkEvaluation> networks;
  int64_t keep = 0;       // programs of a task that Best-k keeps
  bool weighted = false;  // whether tasks count by the networks' number of calls
};

struct EvaluateOptions {
  const NetworkTasks* networks = nullptr;  // networks that have their own scores
  int64_t keep = 0;                        // 0: no Best-k
};

/// Returns a model's score of each program. Errors: no program; the model has nothing to say, or a
/// score is not a number.
Result<std::vector<float>> predict_scores(LearnedModel& model,
                                          const ProgramTable& table,
                                          std::span<const size_t> programs);
/// Evaluates the scores of predict_scores() by evaluate_scores().
Result<Evaluation> evaluate(LearnedModel& model,
                            const ProgramTable& table,
                            std::span<const size_t> programs,
                            const EvaluateOptions& options = {});
/// `scores` has one score a program of `programs`.
Evaluation evaluate_scores(std::span<const float> scores,
                           const ProgramTable& table,
                           std::span<const size_t> programs,
                           const EvaluateOptions& options = {});

/// Turns scores of any unit, at least 0, into shares of the task's best score, like labels. The
/// order of the scores stays.
std::vector<float> relative_scores(std::span<const float> scores,
                                   const ProgramTable& table,
                                   std::span<const size_t> programs);

}  // namespace pruner
