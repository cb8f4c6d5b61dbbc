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
      program.rows[i] = (program.rows[i] - statistics[Input::kStatements].mean[j]) /
                        statistics[Input::kStatements].deviation[j];
    }
    for (size_t i = 0; i < program.dataflow.size(); ++i) {
      const size_t j = i % kDataflowFeatures;
      program.dataflow[i] = (program.dataflow[i] - statistics[Input::kDataflow].mean[j]) /
                            statistics[Input::kDataflow].deviation[j];
    }
  }
  return programs;
}

TEST(Standardize, IsTheSameNetworkForStandardizedFeatures) {
  const std::vector<TrainingSample> samples = synthetic_samples(3, 40, 1);
  const FeatureStatistics statistics = statistics_of(samples);
  for (const Architecture* architecture : {&kPacm, &kTenSetMlp}) {
    const ModelWeights weights = random_weights(*architecture, 5);
    ModelWeights changed = weights;
    standardize(statistics, changed);
    changed.scale[Input::kStatements].assign(kRowFeatures, 1);
    if (!changed.scale[Input::kDataflow].empty())
      changed.scale[Input::kDataflow].assign(kDataflowFeatures, 1);
    const std::vector<float> expected = Network(weights).predict(features_of(samples), 1);
    const std::vector<float> scores =
        Network(changed).predict(standardized(samples, statistics), 1);
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(scores[i], expected[i], 1e-3 * (1 + std::abs(expected[i]))) << i;

    changed.scale[Input::kStatements] = weights.scale[Input::kStatements];
    changed.scale[Input::kDataflow] = weights.scale[Input::kDataflow];
    standardize(statistics, changed, /*back=*/true);
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
  EXPECT_TRUE(statistics[Input::kStatements].constant[3]);
  EXPECT_EQ(statistics[Input::kStatements].mean[3], 4);
  EXPECT_GT(statistics[Input::kStatements].deviation[3], 0);
  ModelWeights weights = random_weights(kTenSetMlp, 1);
  forget_constant_columns(statistics, weights);
  const std::vector<float>& layer = weights.tensors["segment_encoder.0.weight"].values;
  EXPECT_EQ(layer[3], 0);
  EXPECT_EQ(layer[kRowFeatures + 3], 0);
  EXPECT_NE(layer[kRowFeatures + 4], 0);
}

}  // namespace
}  // namespace pruner
