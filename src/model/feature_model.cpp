// A learned model over candidates: what it reads of each one, made by all threads, is what it
// scores and learns from.
#include <algorithm>
#include <map>
#include <string>

#include "analysis/primitives.h"
#include "analysis/statements.h"
#include "ansor/own_steps.h"
#include "model/cost_model.h"
#include "support/parallel_for.h"

namespace pruner {

namespace {

/// Leaves out what an instruction computes, and where its sums begin.
void drop_units(Statements& program) {
  std::vector<bool> computed(program.buffers.size());
  for (const Statement& s : program.statements)
    if (s.unit.used()) computed[s.buffer.value] = true;
  std::erase_if(program.statements, [&](const Statement& s) { return computed[s.buffer.value]; });
}

class FeatureModel : public CostModel {
 public:
  FeatureModel(std::unique_ptr<LearnedModel> learned, int jobs, FeatureParts parts)
      : learned_(std::move(learned)), jobs_(jobs), parts_(parts) {}

  std::vector<float> predict(const Task& task,
                             const Space& space,
                             std::span<const Candidate> batch) override {
    if (!learned_->ready()) return {};
    const TaskFlags flags = task_flags(task.dag);
    std::vector<ProgramFeatures> programs(batch.size());
    parallel_for(static_cast<int64_t>(batch.size()), jobs_, [&](int64_t i) {
      const auto n = static_cast<size_t>(i);
      programs[n] = read(space, batch[n], flags);
    });
    return learned_->predict(programs);
  }

  Result<Unit> update(std::span<const Sample> samples) override {
    std::vector<TrainingSample> learned;
    for (const Sample& s : samples) {
      const auto [task, fresh] = tasks_.emplace(s.task->key, static_cast<int32_t>(tasks_.size()));
      learned.push_back(
          {task->second, read(*s.space, s.candidate, task_flags(s.task->dag)), s.cost_s});
    }
    if (learned_->fault())
      return Error("the cost model's scores are of no use: ",
                   *learned_->fault(),
                   "; choose other weights (--load-model) or another mode (--cost-model)");
    return learned_->update(learned);
  }

 private:
  ProgramFeatures read(const Space& space,
                       const Candidate& candidate,
                       const TaskFlags& flags) const {
    ProgramFeatures program;
    if (learned_->reads_primitives()) {
      program.primitives = primitives(ansor::steps_of(space, candidate));
      return program;
    }
    Statements statements = make_statements(make_loop_nest(space, candidate));
    if (learned_->is_blind_to_units()) drop_units(statements);
    program = features(statements, flags);
    if (!parts_.rows) std::ranges::fill(program.rows, 0.0f);
    if (!parts_.dataflow) program.dataflow.fill(0);
    return program;
  }

  std::unique_ptr<LearnedModel> learned_;
  int jobs_;
  FeatureParts parts_;
  std::map<std::string, int32_t> tasks_;  // task numbers by key
};

}  // namespace

std::unique_ptr<CostModel> make_feature_model(std::unique_ptr<LearnedModel> learned,
                                              int jobs,
                                              FeatureParts parts) {
  return std::make_unique<FeatureModel>(std::move(learned), jobs, parts);
}

}  // namespace pruner
