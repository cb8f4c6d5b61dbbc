// The draft score, corrected by what was measured: the logarithm of measured over drafted time is
// averaged over the task's trials, nearer ones counting more. Nothing is trained; with no trials it
// is the draft score itself.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "model/cost_model.h"

namespace pruner {

namespace {

// No trial counts as more times slower or faster than drafted; a failed one as so many slower.
constexpr double kMostRatio = 8;
// Decisions in which a neighbour differs until it counts 1/e.
constexpr double kNeighbourDecisions = 2;
// How many trials' worth of trust the wider average has against the nearer one.
constexpr double kTaskPrior = 2;      // all of the task, against the sketch
constexpr double kSketchPrior = 0.5;  // all of the sketch, against the neighbours

struct Mean {
  double sum = 0, weight = 0;

  void add(double value, double w = 1) {
    sum += value * w;
    weight += w;
  }
  double value(double prior, double prior_weight) const {
    return (sum + prior * prior_weight) / (weight + prior_weight);
  }
};

/// A measured candidate's decisions, and log(measured / drafted).
struct Residual {
  std::vector<int32_t> decisions;
  double log_ratio;
};

struct SketchTrials {
  Mean mean;
  std::vector<Residual> residuals;
};

struct TaskTrials {
  Mean mean;
  std::vector<SketchTrials> sketches;
};

/// Returns the weight of a neighbour: 1 if no decision differs.
double neighbour_weight(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
  return std::exp(-differing_decisions(a, b) / kNeighbourDecisions);
}

double correction(const TaskTrials& trials, const Candidate& candidate) {
  const SketchTrials& sketch = trials.sketches[candidate.sketch.value];
  const double of_task = trials.mean.value(0, 1e-9);
  const double of_sketch = sketch.mean.value(of_task, kTaskPrior);
  Mean near;
  for (const Residual& r : sketch.residuals) {
    near.add(r.log_ratio, neighbour_weight(r.decisions, candidate.decisions));
  }
  return near.value(of_sketch, kSketchPrior);
}

class CalibratedDraftModel : public CostModel {
 public:
  explicit CalibratedDraftModel(const DraftOptions& options) : draft_(make_draft_model(options)) {}

  std::vector<float> predict(const Task& task,
                             const Space& space,
                             std::span<const Candidate> batch) override {
    std::vector<float> scores = draft_->predict(task, space, batch);
    const auto found = tasks_.find(task.key);
    if (found == tasks_.end()) return scores;
    for (size_t i = 0; i < batch.size(); ++i) {
      scores[i] *= static_cast<float>(std::exp(-correction(found->second, batch[i])));
    }
    return scores;
  }

  Result<Unit> update(std::span<const Sample> samples) override {
    for (const Sample& sample : samples) add(sample);
    return Unit{};
  }

 private:
  void add(const Sample& sample) {
    TaskTrials& trials = tasks_[sample.task->key];
    trials.sketches.resize(sample.space->sketches.size());
    const double drafted_s =
        1 / draft_->predict(*sample.task, *sample.space, {&sample.candidate, 1})[0];
    // One timing may be far off; it should not condemn a region.
    const double log_ratio =
        std::log(std::clamp(sample.cost_s / drafted_s, 1 / kMostRatio, kMostRatio));
    SketchTrials& sketch = trials.sketches[sample.candidate.sketch.value];
    trials.mean.add(log_ratio);
    sketch.mean.add(log_ratio);
    sketch.residuals.push_back({sample.candidate.decisions, log_ratio});
  }

  std::unique_ptr<CostModel> draft_;
  std::unordered_map<std::string, TaskTrials> tasks_;
};

}  // namespace

std::unique_ptr<CostModel> make_calibrated_draft_model(const DraftOptions& options) {
  return std::make_unique<CalibratedDraftModel>(options);
}

}  // namespace pruner
