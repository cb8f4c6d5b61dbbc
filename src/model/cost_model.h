// Scores candidates. The draft model and every learned model are this interface, and their only
// door.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "analysis/draft_form.h"
#include "model/learned_model.h"
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
  /// Returns one score a candidate; empty if the model has nothing to say. Candidates are legal.
  virtual std::vector<float> predict(const Task& task,
                                     const Space& space,
                                     std::span<const Candidate> batch) = 0;
  /// Learns from measured candidates; models that don't learn do nothing.
  virtual Result<Unit> update(std::span<const Sample> samples) = 0;
};

struct DraftOptions {
  int jobs = 1;                       // threads that score
  Penalties penalties = {};           // penalties that the draft counts
  DraftForm form = DraftForm::kOurs;  // on a GPU; a CPU has one
};
/// The closed-form analyzer as a model: score = 1 / predicted seconds.
std::unique_ptr<CostModel> make_draft_model(const DraftOptions& options = {});
/// The draft score, corrected by how the task's measured candidates compared with theirs.
std::unique_ptr<CostModel> make_calibrated_draft_model(const DraftOptions& options = {});
/// Stands for a learned model that cannot be trained here: it has nothing to say.
std::unique_ptr<CostModel> make_untrained_model();
/// Uniformly random scores: the base line.
std::unique_ptr<CostModel> make_random_model(uint64_t seed);
/// The features that a model sees; the others are zero to it.
struct FeatureParts {
  bool rows = true, dataflow = true;
};
/// Makes a learned model, whose features `jobs` threads extract. Its update fails if the model
/// cannot train, or could not score.
std::unique_ptr<CostModel> make_feature_model(std::unique_ptr<LearnedModel> learned,
                                              int jobs,
                                              FeatureParts parts = {});
/// Combines both models, weighed by how well each foretold the measurements. The result has nothing
/// to say while `learned` has no scores. `draft` outlives the result, and learns samples after it.
std::unique_ptr<CostModel> make_stacked_model(CostModel& draft,
                                              std::unique_ptr<CostModel> learned,
                                              double of_learned = 0);

}  // namespace pruner
