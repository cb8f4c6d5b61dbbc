#include "model/nn/standardize.h"

#include "golden.h"
#include "model/checkpoints.h"
#include "model/nn/network.h"
#include "model/synthetic.h"

namespace pruner {
namespace {

/// The samples as a network for standardized features takes them.
std::vector<ProgramFeatures> standardized(const std::vector<TrainingSample>& samples,
                                          const FeatureStatistics& statistics) {
  std::vector<ProgramFeatures> programs = features_of(samples);
  for (ProgramFeatures& program : programs) {
    for (size_t i = 0; i < program.rows.size(); ++i) {
      const size_t j = i % kRowFeatures;
      program.rows[i] = (program.rows[i] - statistics.rows.mean[j]) / statistics.rows.deviation[j];
    }
    for (size_t i = 0; i < program.dataflow.size(); ++i) {
      const size_t j = i % kDataflowFeatures;
      program.dataflow[i] =
          (program.dataflow[i] - statistics.dataflow.mean[j]) / statistics.dataflow.deviation[j];
    }
  }
  return programs;
}

TEST(Standardize, IsTheSameNetworkForStandardizedFeatures) {
  const std::vector<TrainingSample> samples = synthetic_samples(3, 40, 1);
  const FeatureStatistics statistics = statistics_of(samples);
  for (const Architecture architecture : {Architecture::kPacm, Architecture::kTenSetMlp}) {
    const ModelWeights weights = random_weights(architecture, 5);
    ModelWeights changed = weights;
    standardize(statistics, changed);
    changed.row_scale.assign(kRowFeatures, 1);
    if (!changed.dataflow_scale.empty()) changed.dataflow_scale.assign(kDataflowFeatures, 1);
    const std::vector<float> expected = Network(weights).predict(features_of(samples), 1);
    const std::vector<float> scores =
        Network(changed).predict(standardized(samples, statistics), 1);
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(scores[i], expected[i], 1e-3 * (1 + std::abs(expected[i]))) << i;

    changed.row_scale = weights.row_scale;
    changed.dataflow_scale = weights.dataflow_scale;
    unstandardize(statistics, changed);
    const std::vector<float>& back = changed.tensors["segment_encoder.0.weight"].values;
    const std::vector<float>& first =
        weights.tensors.find("segment_encoder.0.weight")->second.values;
    for (size_t i = 0; i < first.size(); ++i)
      EXPECT_NEAR(back[i], first[i], 1e-5 * (1 + std::abs(first[i])));
  }
}

TEST(Statistics, KnowColumnsThatNeverVary) {
  std::vector<TrainingSample> samples = synthetic_samples(1, 10, 1);
  for (TrainingSample& sample : samples)
    for (size_t i = 3; i < sample.features.rows.size(); i += kRowFeatures)
      sample.features.rows[i] = 4;
  const FeatureStatistics statistics = statistics_of(samples);
  EXPECT_TRUE(statistics.rows.constant[3]);
  EXPECT_EQ(statistics.rows.mean[3], 4);
  EXPECT_GT(statistics.rows.deviation[3], 0);
  ModelWeights weights = random_weights(Architecture::kTenSetMlp, 1);
  forget_constant_columns(statistics, weights);
  const std::vector<float>& layer = weights.tensors["segment_encoder.0.weight"].values;
  EXPECT_EQ(layer[3], 0);
  EXPECT_EQ(layer[kRowFeatures + 3], 0);
  EXPECT_NE(layer[kRowFeatures + 4], 0);
}

}  // namespace
}  // namespace pruner
