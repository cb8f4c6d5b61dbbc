// The draft and a learned model together. What each foretold of the candidates that were measured,
// before it learned of them, says what each is worth: the logarithm of the measured time is
// regressed on both (stacked generalisation, Wolpert 1992), starting from the draft alone.
#include <algorithm>
#include <cmath>

#include "model/cost_model.h"

namespace pruner {

namespace {

// Measured candidates' worth of trust that the draft alone is right.
constexpr double kPrior = 4;
// What a round's sums keep of those before, as the learned model changes.
constexpr double kKept = 0.95;

class StackedModel : public CostModel {
 public:
  StackedModel(CostModel& draft, std::unique_ptr<CostModel> learned)
      : draft_(draft), learned_(std::move(learned)) {}

  std::vector<float> predict(const Task& task,
                             const Space& space,
                             std::span<const Candidate> batch) override {
    std::vector<float> scores = learned_->predict(task, space, batch);
    if (scores.empty()) return scores;
    const std::vector<float> drafted = draft_.predict(task, space, batch);
    for (size_t i = 0; i < scores.size(); ++i) {
      scores[i] = static_cast<float>(of_draft_ * std::log(static_cast<double>(drafted[i])) +
                                     of_learned_ * static_cast<double>(scores[i]));
    }
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
  // Adds one task's round to the sums, each quantity less its mean, and solves for the weights.
  void weigh(std::span<const Sample> samples) {
    std::vector<Candidate> batch;
    for (const Sample& s : samples) batch.push_back(s.candidate);
    const Task& task = *samples.front().task;
    const Space& space = *samples.front().space;
    const std::vector<float> learned = learned_->predict(task, space, batch);
    if (learned.empty() || batch.size() < 2) return;
    const std::vector<float> drafted = draft_.predict(task, space, batch);
    std::vector<double> d, m, y;
    for (size_t i = 0; i < batch.size(); ++i) {
      d.push_back(std::log(static_cast<double>(drafted[i])));
      m.push_back(static_cast<double>(learned[i]));
      y.push_back(-std::log(samples[i].cost_s));
    }
    for (std::vector<double>* v : {&d, &m, &y}) {
      double mean = 0;
      for (const double x : *v) mean += x / static_cast<double>(v->size());
      for (double& x : *v) x -= mean;
    }
    for (double* sum : {&dd_, &dm_, &mm_, &dy_, &my_, &n_}) *sum *= kKept;
    for (size_t i = 0; i < batch.size(); ++i) {
      dd_ += d[i] * d[i];
      dm_ += d[i] * m[i];
      mm_ += m[i] * m[i];
      dy_ += d[i] * y[i];
      my_ += m[i] * y[i];
      n_ += 1;
    }
    // Ridge towards (1, 0), in units of each quantity's variance.
    const double dd = dd_ + kPrior * dd_ / n_ + 1e-9, mm = mm_ + kPrior * mm_ / n_ + 1e-9;
    const double dy = dy_ + kPrior * dd_ / n_ + 1e-9;
    const double determinant = dd * mm - dm_ * dm_;
    if (determinant <= 1e-12 * dd * mm) return;
    of_draft_ = std::max(0.0, (dy * mm - dm_ * my_) / determinant);
    of_learned_ = std::max(0.0, (dd * my_ - dm_ * dy) / determinant);
    if (of_draft_ == 0 && of_learned_ == 0) of_draft_ = 1;
  }

  CostModel& draft_;
  std::unique_ptr<CostModel> learned_;
  double of_draft_ = 1, of_learned_ = 0;
  double dd_ = 0, dm_ = 0, mm_ = 0, dy_ = 0, my_ = 0, n_ = 0;  // weighted sums
};

}  // namespace

std::unique_ptr<CostModel> make_stacked_model(CostModel& draft,
                                              std::unique_ptr<CostModel> learned) {
  return std::make_unique<StackedModel>(draft, std::move(learned));
}

}  // namespace pruner
