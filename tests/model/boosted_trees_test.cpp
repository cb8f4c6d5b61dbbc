#include "model/boosted_trees.h"

#include <cmath>

#include "golden.h"
#include "model/synthetic.h"

namespace pruner {
namespace {

TEST(BoostedTrees, OrderProgramsTheyHaveNotSeenAndSurviveBeingWritten) {
  const Result<BoostedTrees> trees =
      BoostedTrees::fit(synthetic_samples(4, 150, 1), {.boosting = {.rounds = 60}});
  if (!trees.ok() && trees.error().message().starts_with("no libxgboost"))
    GTEST_SKIP() << trees.error().message();
  ASSERT_TRUE(trees.ok()) << trees.error().message();
  const std::vector<TrainingSample> unseen = synthetic_samples(4, 60, 999);
  std::vector<ProgramFeatures> programs = features_of(unseen);
  const Result<std::vector<float>> scores = trees->predict(programs);
  ASSERT_TRUE(scores.ok()) << scores.error().message();
  EXPECT_GT(accuracy_of(*scores, unseen), 0.75);  // no data flow, and labels of other programs

  const Result<std::string> json = trees->print();
  ASSERT_TRUE(json.ok()) << json.error().message();
  const Result<BoostedTrees> read = BoostedTrees::parse(*json, 1);
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(*read->predict(programs), *scores);

  programs.resize(2);
  programs[0].rows.clear();
  const Result<std::vector<float>> two = read->predict(programs);
  EXPECT_EQ((*two)[0], -std::numeric_limits<float>::infinity());
  EXPECT_EQ((*two)[1], (*scores)[1]);
}

// One program of two equal rows: the sum, not each row, approaches the label of 1.
TEST(BoostedTrees, AddUpTheRowsOfAProgram) {
  std::vector<TrainingSample> samples(20);
  for (size_t i = 0; i < samples.size(); ++i) {
    samples[i].features.rows.assign((1 + i % 2) * kRowFeatures, static_cast<float>(i % 2));
    samples[i].latency_s = 1;
  }
  const Result<BoostedTrees> trees = BoostedTrees::fit(samples, {.boosting = {.rounds = 60}});
  if (!trees.ok()) GTEST_SKIP() << trees.error().message();
  const std::vector<ProgramFeatures> programs = {samples[0].features, samples[1].features};
  const Result<std::vector<float>> scores = trees->predict(programs);
  ASSERT_TRUE(scores.ok());
  for (const float score : *scores) EXPECT_NEAR(score, 1, 0.02);
}

TEST(Boosting, OfMetaScheduleHasItsConstants) {
  EXPECT_EQ(kMetaScheduleBoosting.rounds, 10000);
  EXPECT_EQ(kMetaScheduleBoosting.max_depth, 10);
  EXPECT_EQ(kMetaScheduleBoosting.gamma, 0.001f);
  EXPECT_EQ(kMetaScheduleBoosting.min_child_weight, 0);
  EXPECT_EQ(kMetaScheduleBoosting.training_patience, 50);
}

// Two programs of equal rows that took 1 and 3 seconds: their labels are 1 and 1/3, their mean 2/3,
// and weighed by themselves (1 + 1/9) / (1 + 1/3) = 5/6.
TEST(BoostedTrees, WeighFastProgramsMoreWhereToldTo) {
  std::vector<TrainingSample> samples(2);
  for (TrainingSample& sample : samples) sample.features.rows.assign(kRowFeatures, 1);
  samples[0].latency_s = 1;
  samples[1].latency_s = 3;
  for (const auto& [weighs, expected] : {std::pair{false, 2.0 / 3}, {true, 5.0 / 6}}) {
    const Result<BoostedTrees> trees = BoostedTrees::fit(
        samples,
        {.boosting = {
             .rounds = 200, .gamma = 0, .min_child_weight = 0, .weighs_by_label = weighs}});
    if (!trees.ok()) GTEST_SKIP() << trees.error().message();
    const ProgramFeatures program = samples[0].features;
    EXPECT_NEAR((*trees->predict({&program, 1}))[0], expected, 0.01);
  }
}

TEST(BoostedTrees, StopWhenTheyMeetWhatTheyAreTrainedOnNoBetter) {
  const std::vector<TrainingSample> samples = synthetic_samples(2, 40, 1);
  const Result<BoostedTrees> trees =
      BoostedTrees::fit(samples, {.boosting = kMetaScheduleBoosting});
  if (!trees.ok()) GTEST_SKIP() << trees.error().message();
  const int rounds = *trees->rounds();
  EXPECT_GT(rounds, 50);
  EXPECT_LT(rounds, kMetaScheduleBoosting.rounds);
  Boosting patient = kMetaScheduleBoosting;
  patient.training_patience = 0;
  patient.rounds = rounds + 60;
  EXPECT_EQ(*BoostedTrees::fit(samples, {.boosting = patient})->rounds(), rounds + 60);
}

// The n-th tree leaves an error of 0.5 q^n on two equal programs, q = 1 - 0.2 * 2 / (2 + 1). The
// first six decimals of the error are 0 from 97 trees on.
TEST(BoostedTrees, ReadSixDecimalsOfTheirError) {
  std::vector<TrainingSample> samples(2);
  for (TrainingSample& sample : samples) {
    sample.features.rows.assign(kRowFeatures, 1);
    sample.latency_s = 1;
  }
  const Result<BoostedTrees> trees =
      BoostedTrees::fit(samples, {.boosting = kMetaScheduleBoosting});
  if (!trees.ok()) GTEST_SKIP() << trees.error().message();
  EXPECT_NEAR(*trees->rounds(), 97 + 50, 2);
}

TEST(BoostedTrees, RefuseWhatIsNoModel) {
  EXPECT_ERROR(BoostedTrees::parse("binf and more", 1), "not a model of boosted trees");
  EXPECT_ERROR(BoostedTrees::parse("{\"weights\": []}", 1), "not a model of boosted trees");
  const Result<BoostedTrees> damaged = BoostedTrees::parse("{\"learner\": {}}", 1);
  EXPECT_FALSE(damaged.ok());
  EXPECT_EQ(damaged.error().message().find('\n'), std::string::npos);
}

}  // namespace
}  // namespace pruner
