#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "model/cost_model.h"
#include "space/operator_task.h"

namespace pruner {
namespace {

/// Scores a candidate by a function of it.
class Fixed : public CostModel {
 public:
  explicit Fixed(std::function<double(const Candidate&)> score) : score_(std::move(score)) {}
  std::vector<float> predict(const Task&, const Space&, std::span<const Candidate> batch) override {
    std::vector<float> scores;
    for (const Candidate& c : batch) scores.push_back(static_cast<float>(score_(c)));
    return scores;
  }
  Result<Unit> update(std::span<const Sample>) override { return Unit{}; }

 private:
  std::function<double(const Candidate&)> score_;
};

double noise(const Candidate& c, size_t salt) {
  return static_cast<double>((CandidateHash{}(c) ^ salt) * 0x9e3779b97f4a7c15ull >> 40) / (1 << 24);
}
double cost_s(const Candidate& c) { return std::exp(2 * noise(c, 1)); }

/// Share of pairs that a model orders as the machine does, after so many rounds of ten.
double accuracy(CostModel& draft, std::unique_ptr<CostModel> learned, int rounds) {
  const Task task = operator_task("matmul 64 64 64");
  const Space space = make_space(task);
  const auto stacked = make_stacked_model(draft, std::move(learned));
  Rng rng(3);
  for (int round = 0; round < rounds; ++round) {
    std::vector<Sample> samples;
    for (int i = 0; i < 10; ++i) {
      const Candidate c = sample(space, rng);
      samples.push_back({&task, &space, c, cost_s(c)});
    }
    samples.push_back({&task, &space, sample(space, rng), 1e10});  // one that failed
    EXPECT_TRUE(stacked->update(samples).ok());
  }
  std::vector<Candidate> batch;
  for (int i = 0; i < 100; ++i) batch.push_back(sample(space, rng));
  const std::vector<float> scores = stacked->predict(task, space, batch);
  double right = 0, pairs = 0;
  for (size_t a = 0; a < batch.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      right += (scores[a] > scores[b]) == (cost_s(batch[a]) < cost_s(batch[b]));
      ++pairs;
    }
  }
  return right / pairs;
}

TEST(StackedModel, FollowsTheOneThatForetoldWhatWasMeasured) {
  const auto right = [](const Candidate& c) { return 1 / cost_s(c); };
  const auto wrong = [](const Candidate& c) { return std::exp(noise(c, 77)); };
  const auto learned = [&](const auto& score) {  // the score may have any scale
    return std::make_unique<Fixed>([&](const Candidate& c) { return 30 * std::log(score(c)) - 5; });
  };
  Fixed good(right), bad(wrong);
  EXPECT_GT(accuracy(good, learned(wrong), 0), 0.95) << "the draft, before anything is known";
  EXPECT_LT(accuracy(bad, learned(right), 0), 0.6);
  EXPECT_GT(accuracy(good, learned(wrong), 4), 0.95);
  EXPECT_GT(accuracy(bad, learned(right), 4), 0.9);
}

}  // namespace
}  // namespace pruner
