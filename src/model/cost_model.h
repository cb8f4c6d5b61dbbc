// Scores candidates. The draft model and every learned model are this interface, and their only door.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "space/space.h"

namespace pruner {

/// A measured candidate, for training.
struct Sample {
  const Task* task;
  const Space* space;
  Candidate candidate;
  double cost_s;
};

/// Scores candidates; higher is faster.
class CostModel {
 public:
  virtual ~CostModel() = default;
  /// One score a candidate. Legal candidates only.
  virtual std::vector<float> predict(const Task& task, const Space& space, std::span<const Candidate> batch) = 0;
  /// Learns from what was measured; models that don't learn do nothing.
  virtual Result<Unit> update(std::span<const Sample> samples) = 0;
};

/// The closed-form analyzer as a model: score = 1 / predicted seconds.
std::unique_ptr<CostModel> make_draft_model();
/// Uniformly random scores: the base line.
std::unique_ptr<CostModel> make_random_model(uint64_t seed);

/// One row a `--cost-model` name; the error lists them.
Result<std::unique_ptr<CostModel>> make_cost_model(std::string_view name, uint64_t seed);

}  // namespace pruner
