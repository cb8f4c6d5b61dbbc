#include <gtest/gtest.h>

#include <cmath>

#include "model/cost_model.h"
#include "tensor/operators.h"

namespace pruner {
namespace {

struct Matmul {
  Task task = make_task(
      *parse_operator("matmul 256 256 256"), *parse_target("llvm -mcpu=haswell", 2), "matmul");
  Space space = make_space(task);

  std::vector<Candidate> legal(int count) const {
    Rng rng(0);
    std::vector<Candidate> drawn;
    while (static_cast<int>(drawn.size()) < count) {
      Candidate candidate = sample(space, rng);
      if (is_legal(space, candidate)) drawn.push_back(std::move(candidate));
    }
    return drawn;
  }
};

TEST(CalibratedDraftModel, IsTheDraftUntilSomethingWasMeasured) {
  const Matmul m;
  const std::vector<Candidate> batch = m.legal(20);
  EXPECT_EQ(make_calibrated_draft_model()->predict(m.task, m.space, batch),
            make_draft_model()->predict(m.task, m.space, batch));
}

TEST(CalibratedDraftModel, TakesOverWhatMeasuredCandidatesRanAt) {
  const Matmul m;
  const std::vector<Candidate> batch = m.legal(40);
  const std::vector<float> drafted = make_draft_model()->predict(m.task, m.space, batch);
  std::vector<Sample> samples;
  for (size_t i = 0; i < batch.size(); ++i)
    samples.push_back({&m.task, &m.space, batch[i], 3 / drafted[i]});
  const auto model = make_calibrated_draft_model();
  ASSERT_TRUE(model->update(samples).ok());
  const std::vector<float> scores = model->predict(m.task, m.space, batch);
  for (size_t i = 0; i < batch.size(); ++i)
    EXPECT_NEAR(scores[i], drafted[i] / 3, 0.02 * drafted[i]);
}

TEST(CalibratedDraftModel, RanksTheNeighboursOfASlowCandidateLower) {
  const Matmul m;
  const std::vector<Candidate> batch = m.legal(2);
  const auto model = make_calibrated_draft_model();
  const auto draft = make_draft_model();
  const std::vector<float> drafted = draft->predict(m.task, m.space, batch);
  // One ran as drafted, the other failed.
  const Sample samples[] = {{&m.task, &m.space, batch[0], 1 / drafted[0]},
                            {&m.task, &m.space, batch[1], 1e10}};
  ASSERT_TRUE(model->update(samples).ok());
  const std::vector<float> scores = model->predict(m.task, m.space, batch);
  EXPECT_GT(scores[0] / drafted[0], 2 * scores[1] / drafted[1]);
}

}  // namespace
}  // namespace pruner
