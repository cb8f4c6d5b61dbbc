#include "model/training_set.h"

#include <gtest/gtest.h>

#include "model/checkpoints.h"
#include "model/nn/network.h"

namespace pruner {
namespace {

TrainingSample sample(int32_t task, double latency_s, float feature) {
  TrainingSample made{.task = task, .features = {}, .latency_s = latency_s};
  made.features.rows.assign(2 * kRowFeatures, 0.5f);
  made.features.rows[kRowFeatures + 3] = feature;
  made.features.dataflow[kDataflowFeatures] = 2 * feature;
  return made;
}

TEST(TrainingSet, LabelsProgramsByTheBestOfTheirTask) {
  const TrainingSample samples[] = {sample(0, 2e-3, 1),
                                    sample(1, 1e10, 1),
                                    sample(0, 1e-3, 1),
                                    sample(1, 1e10, 1),
                                    sample(0, 1e10, 1)};
  const std::vector<float> labels = relative_throughputs(samples);
  EXPECT_EQ(labels[0], 0.5f);
  EXPECT_EQ(labels[1], 1);  // nothing of the task ran
  EXPECT_EQ(labels[2], 1);
  EXPECT_LT(labels[4], 1e-12f);
}

TEST(TrainingSet, ScalesAreTheMaximaOfColumns) {
  const TrainingSample samples[] = {sample(0, 1, 3), sample(0, 1, 5)};
  const FeatureScales scales = scales_of(samples);
  EXPECT_EQ(scales[Input::kStatements][3], 5);
  EXPECT_EQ(scales[Input::kStatements][4], 0.5f);
  EXPECT_EQ(scales[Input::kDataflow][0], 10);
  EXPECT_EQ(scales[Input::kDataflow][1], 1);  // always 0
}

TEST(TrainingSet, WiderScalesLeaveTheNetworkAsItWas) {
  ModelWeights weights = random_weights(kPacm, 1);
  weights.scale[Input::kStatements].assign(kRowFeatures, 0.7f);
  weights.scale[Input::kDataflow].assign(kDataflowFeatures, 0.9f);
  const TrainingSample samples[] = {sample(0, 1, 3), sample(0, 1, 5)};
  ModelWeights wider = weights;
  widen_scales(scales_of(samples), wider);
  EXPECT_EQ(wider.scale[Input::kStatements][3], 5);
  EXPECT_EQ(wider.scale[Input::kStatements][4], 0.7f);
  EXPECT_EQ(wider.scale[Input::kDataflow][0], 10);
  EXPECT_NE(wider.tensors, weights.tensors);
  const std::vector<ProgramFeatures> programs = {samples[0].features, samples[1].features};
  const std::vector<float> before = Network(weights).predict(programs, 1);
  const std::vector<float> after = Network(wider).predict(programs, 1);
  for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(after[i], before[i], 1e-5);
}

TEST(PairwiseAccuracy, CountsThePairsOfEachTask) {
  const float scores[] = {1, 2, 3, 9, 8};
  const float labels[] = {0.1f, 0.3f, 0.2f, 0.5f, 1};
  const int32_t tasks[] = {0, 0, 0, 1, 1};
  // Two of three pairs of the first task, none of the second.
  EXPECT_NEAR(pairwise_accuracy(scores, labels, tasks), (3 * 2.0 / 3 + 0) / 5, 1e-12);
  EXPECT_EQ(pairwise_accuracy({scores, 1}, {labels, 1}, {tasks, 1}), 0.5);
}

}  // namespace
}  // namespace pruner
