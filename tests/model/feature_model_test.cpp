#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "analysis/primitives.h"
#include "analysis/statements.h"
#include "ansor/own_steps.h"
#include "golden.h"
#include "model/cost_model.h"
#include "space/operator_task.h"

namespace pruner {
namespace {

/// Its score is the sum of the features.
class SumOfFeatures : public LearnedModel {
 public:
  bool ready() const override { return ready_; }
  Result<Unit> update(std::span<const TrainingSample> samples) override {
    ready_ = true;
    tasks.push_back(samples[0].task);
    return Error("no training here");
  }
  Result<Unit> save(const std::string&) const override { return Unit{}; }
  std::vector<int32_t> tasks;

 protected:
  Result<std::vector<float>> scores(std::span<const ProgramFeatures> programs) override {
    std::vector<float> found;
    for (const ProgramFeatures& p : programs) {
      float sum = 0;
      for (const float x : p.rows) sum += x;
      found.push_back(sum);
    }
    return found;
  }

 private:
  bool ready_ = false;
};

/// Its score is the last number of the primitives; it has no use for features.
class LastOfPrimitives : public SumOfFeatures {
 public:
  bool ready() const override { return true; }
  bool reads_primitives() const override { return true; }

 protected:
  Result<std::vector<float>> scores(std::span<const ProgramFeatures> programs) override {
    std::vector<float> found;
    for (const ProgramFeatures& p : programs) {
      EXPECT_TRUE(p.rows.empty());
      found.push_back(static_cast<float>(p.primitives.back()));
    }
    return found;
  }
};

TEST(FeatureModel, GivesPrimitivesToWhatReadsThem) {
  const Task task = operator_task("matmul 64 64 64");
  const Space space = make_space(task);
  const auto model = make_feature_model(std::make_unique<LastOfPrimitives>(), 2);
  Rng rng(4);
  std::vector<Candidate> batch;
  for (int i = 0; i < 20; ++i) batch.push_back(sample(space, rng));
  const std::vector<float> scores = model->predict(task, space, batch);
  ASSERT_EQ(scores.size(), batch.size());
  for (size_t i = 0; i < batch.size(); ++i) {
    const std::vector<int32_t> expected = primitives(ansor::steps_of(space, batch[i]));
    EXPECT_EQ(scores[i], static_cast<float>(expected.back()));
  }
}

TEST(FeatureModel, ScoresTheFeaturesOfCandidatesWhateverTheJobs) {
  const Task task = operator_task("matmul 64 64 64"), other = operator_task("matmul 32 64 64");
  const Space space = make_space(task), other_space = make_space(other);
  auto learned = std::make_unique<SumOfFeatures>();
  const SumOfFeatures& seen = *learned;
  const auto model = make_feature_model(std::move(learned), 2);
  Rng rng(4);
  std::vector<Candidate> batch;
  for (int i = 0; i < 20; ++i) batch.push_back(sample(space, rng));
  EXPECT_TRUE(model->predict(task, space, batch).empty()) << "nothing was learned";
  const std::vector<Sample> samples = {{&task, &space, batch[0], 1}};
  const std::vector<Sample> others = {{&other, &other_space, sample(other_space, rng), 1}};
  EXPECT_FALSE(model->update(samples).ok()) << "a training that fails is not passed over";
  EXPECT_FALSE(model->update(others).ok());
  EXPECT_FALSE(model->update(samples).ok());
  EXPECT_EQ(seen.tasks, (std::vector<int32_t>{0, 1, 0}));
  const std::vector<float> scores = model->predict(task, space, batch);
  ASSERT_EQ(scores.size(), batch.size());
  for (size_t i = 0; i < batch.size(); ++i) {
    const ProgramFeatures f =
        features(make_statements(make_loop_nest(space, batch[i])), task_flags(task.dag));
    float sum = 0;
    for (const float x : f.rows) sum += x;
    EXPECT_EQ(scores[i], sum);
  }
}

/// It takes its score from the rows that it sees.
class Blind : public SumOfFeatures {
 public:
  bool ready() const override { return true; }
  bool is_blind_to_units() const override { return true; }

 protected:
  Result<std::vector<float>> scores(std::span<const ProgramFeatures> programs) override {
    std::vector<float> found;
    for (const ProgramFeatures& p : programs) found.push_back(static_cast<float>(p.row_count()));
    return found;
  }
};

// A contraction by an instruction is no row; one by FMAs is, and so is what follows either.
TEST(FeatureModel, ShowsNoUnitToWhatIsBlindToThem) {
  const Task task = operator_task("conv2d 1 64 14 14 64 3 3 padding=1 bits=16 exponent=8 +bias",
                                  *parse_target("llvm -mcpu=sapphirerapids --threads=2", 0));
  const Space space = make_space(task);
  const auto model = make_feature_model(std::make_unique<Blind>(), 1);
  Rng rng(4);
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const Candidate candidate = sample(space, rng);
    const Statements statements = make_statements(make_loop_nest(space, candidate));
    const auto has_unit = [](const Statement& s) { return s.unit.unit >= 0; };
    const bool by_unit = std::ranges::any_of(statements.statements, has_unit);
    const size_t rows = features(statements, task_flags(task.dag)).row_count();
    ASSERT_GT(rows, 1u);
    seen.insert(by_unit ? "unit" : "FMAs");
    EXPECT_EQ(model->predict(task, space, {&candidate, 1})[0],
              static_cast<float>(by_unit ? rows - 1 : rows));
  }
  EXPECT_EQ(seen.size(), 2u);
}

class NoNumbers : public SumOfFeatures {
 public:
  bool ready() const override { return true; }

 protected:
  Result<std::vector<float>> scores(std::span<const ProgramFeatures> programs) override {
    return std::vector<float>(programs.size(), std::nanf(""));
  }
};

// A model that cannot score is said at the next update, which ends the run.
TEST(FeatureModel, SaysThatItsScoresAreNoNumbers) {
  const Task task = operator_task("matmul 64 64 64");
  const Space space = make_space(task);
  const auto model = make_feature_model(std::make_unique<NoNumbers>(), 1);
  Rng rng(4);
  const Candidate candidate = sample(space, rng);
  EXPECT_TRUE(model->predict(task, space, {&candidate, 1}).empty());
  EXPECT_ERROR(model->update({}), "scores are of no use: NaN; choose other weights");
}

}  // namespace
}  // namespace pruner
