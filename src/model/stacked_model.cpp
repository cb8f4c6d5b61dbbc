// The draft and a learned model together, each weighed by what it foretold of the candidates that
// were measured (stacking.h).
#include <algorithm>

#include "model/cost_model.h"
#include "model/stacking.h"

namespace pruner {

namespace {

class StackedModel : public CostModel {
 public:
  StackedModel(CostModel& draft, std::unique_ptr<CostModel> learned, double of_learned)
      : draft_(draft), learned_(std::move(learned)), stacking_(of_learned) {}

  std::vector<float> predict(const Task& task,
                             const Space& space,
                             std::span<const Candidate> batch) override {
    std::vector<float> scores = learned_->predict(task, space, batch);
    if (scores.empty()) return scores;
    const std::vector<float> drafted = draft_.predict(task, space, batch);
    for (size_t i = 0; i < scores.size(); ++i) scores[i] = stacking_.score(drafted[i], scores[i]);
    return scores;
  }

  Result<Unit> update(std::span<const Sample> samples) override {
    std::vector<Sample> ran(samples.begin(), samples.end());
    std::erase_if(ran, [](const Sample& s) { return s.cost_s >= 1e9; });
    while (!ran.empty()) {  // task by task
      const Task* task = ran.front().task;
      const auto others =
          std::stable_partition(ran.begin(), ran.end(), [&](auto& s) { return s.task == task; });
      weigh(std::span(ran).first(static_cast<size_t>(others - ran.begin())));
      ran.erase(ran.begin(), others);
    }
    return learned_->update(samples);
  }

 private:
  void weigh(std::span<const Sample> samples) {
    std::vector<Candidate> batch;
    std::vector<double> times_s;
    for (const Sample& s : samples) {
      batch.push_back(s.candidate);
      times_s.push_back(s.cost_s);
    }
    const Task& task = *samples.front().task;
    const Space& space = *samples.front().space;
    const std::vector<float> learned = learned_->predict(task, space, batch);
    if (learned.empty()) return;
    stacking_.weigh(draft_.predict(task, space, batch), learned, times_s);
  }

  CostModel& draft_;
  std::unique_ptr<CostModel> learned_;
  Stacking stacking_;
};

}  // namespace

std::unique_ptr<CostModel> make_stacked_model(CostModel& draft,
                                              std::unique_ptr<CostModel> learned,
                                              double of_learned) {
  return std::make_unique<StackedModel>(draft, std::move(learned), of_learned);
}

}  // namespace pruner
