#include "model/boosted_trees.h"

#include <cmath>

#include "golden.h"
#include "model/synthetic.h"

namespace pruner {
namespace {

TEST(BoostedTrees, OrderProgramsTheyHaveNotSeenAndSurviveBeingWritten) {
  const Result<BoostedTrees> trees =
      BoostedTrees::fit(synthetic_samples(4, 150, 1), {.rounds = 60});
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
  const Result<BoostedTrees> trees = BoostedTrees::fit(samples, {.rounds = 60});
  if (!trees.ok()) GTEST_SKIP() << trees.error().message();
  const std::vector<ProgramFeatures> programs = {samples[0].features, samples[1].features};
  const Result<std::vector<float>> scores = trees->predict(programs);
  ASSERT_TRUE(scores.ok());
  for (const float score : *scores) EXPECT_NEAR(score, 1, 0.02);
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
