#include "model/synthetic.h"

#include <cmath>

#include "support/rng.h"

namespace pruner {

std::vector<TrainingSample> synthetic_samples(int tasks, int per_task, uint64_t seed) {
  Rng rng(seed);
  std::vector<TrainingSample> samples;
  for (int task = 0; task < tasks; ++task) {
    for (int i = 0; i < per_task; ++i) {
      TrainingSample& sample = samples.emplace_back();
      sample.task = task;
      sample.features.rows.resize(static_cast<size_t>(kRowFeatures * (1 + task % 4)));
      double log2_latency = 2 * task;  // tasks differ in size
      for (size_t r = 0; r < sample.features.row_count(); ++r) {
        float* row = sample.features.rows.data() + r * kRowFeatures;
        for (size_t j = 0; j < 12; ++j) row[j] = static_cast<float>(20 * rng.uniform());
        row[kStatementFeatures + task % kTaskFeatures] = 1;
        log2_latency += 0.2 * row[1] - 0.1 * row[7] + 0.01 * row[2] * row[3];
      }
      if (task % 2 == 0) {
        for (size_t i = 0; i < sample.features.dataflow.size(); i += 9)
          sample.features.dataflow[i] = static_cast<float>(rng.uniform());
        log2_latency += 4 * sample.features.dataflow[45];
      }
      sample.latency_s = 1e-6 * std::exp2(log2_latency);
    }
  }
  return samples;
}

std::vector<ProgramFeatures> features_of(const std::vector<TrainingSample>& samples) {
  std::vector<ProgramFeatures> features;
  for (const TrainingSample& sample : samples) features.push_back(sample.features);
  return features;
}

double accuracy_of(const std::vector<float>& scores, const std::vector<TrainingSample>& samples) {
  std::vector<int32_t> tasks;
  for (const TrainingSample& sample : samples) tasks.push_back(sample.task);
  return pairwise_accuracy(scores, relative_throughputs(samples), tasks);
}

}  // namespace pruner
