// Programs whose latency is a known function of their features, for tests that learn.
#pragma once

#include <vector>

#include "model/training_set.h"

namespace pruner {

/// `per_task` programs for each of the tasks [0, tasks): as many rows as the task has, random
/// columns, and a latency that depends on columns of the rows and of the data flow.
std::vector<TrainingSample> synthetic_samples(int tasks, int per_task, uint64_t seed);

/// How well `scores` order the samples within their tasks.
double accuracy_of(const std::vector<float>& scores, const std::vector<TrainingSample>& samples);

std::vector<ProgramFeatures> features_of(const std::vector<TrainingSample>& samples);

}  // namespace pruner
