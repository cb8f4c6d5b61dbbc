// Scores candidates. The draft model and every learned model are this interface, and their only
// door.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "space/space.h"

namespace pruner {

/// A measured candidate, for training.
struct Sample {
  const Task* task;
  const Space* space;
  Candidate candidate;
  double cost_s;  // 1e10 when the trial failed
};

/// Scores candidates; higher is faster.
class CostModel {
 public:
  virtual ~CostModel() = default;
  /// One score a candidate. Legal candidates only. Empty: the model has nothing to say.
  virtual std::vector<float> predict(const Task& task,
                                     const Space& space,
                                     std::span<const Candidate> batch) = 0;
  /// Learns from what was measured; models that don't learn do nothing.
  virtual Result<Unit> update(std::span<const Sample> samples) = 0;
};

/// What every model is made with.
struct CostModelOptions {
  uint64_t seed = 0;
  int jobs = 1;  // threads that score a batch
};

/// The closed-form analyzer as a model: score = 1 / predicted seconds.
std::unique_ptr<CostModel> make_draft_model(int jobs = 1);
/// The draft score, corrected by how the task's measured candidates compared with theirs.
std::unique_ptr<CostModel> make_calibrated_draft_model(int jobs = 1);
/// Uniformly random scores: the base line.
std::unique_ptr<CostModel> make_random_model(uint64_t seed);

/// The model of a `--cost-model` name (kCostModels); the error lists the names.
Result<std::unique_ptr<CostModel>> make_cost_model(std::string_view name,
                                                   const CostModelOptions& options);
/// "draft or random": the names of this build.
std::string cost_model_names();

}  // namespace pruner
