// A network for features of mean 0 and deviation 1 <-> the same network for features divided by
// their scales, which is how it is stored: the first layers' weights and biases make up for it.
// Columns of search logs vary by a few percent of their maxima; a training sees that variation
// whole.
#pragma once

#include <span>
#include <vector>

#include "model/training_set.h"

namespace pruner {

struct ColumnStatistics {
  std::vector<float> mean, deviation;  // of raw features; a deviation is above 0
  std::vector<bool> constant;          // the deviation stands for that of a column without any
};

/// Over the rows of programs that have such.
using FeatureStatistics = PerInput<ColumnStatistics>;
FeatureStatistics statistics_of(std::span<const TrainingSample> samples);

/// `weights` for scaled features (they have scales) -> tensors for standardized ones,
/// or the way `back`.
void standardize(const FeatureStatistics& statistics, ModelWeights& weights, bool back = false);
/// Sets what constant columns count for to zero: a network that never saw them vary.
void forget_constant_columns(const FeatureStatistics& statistics, ModelWeights& weights);

}  // namespace pruner
