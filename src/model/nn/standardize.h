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
  std::vector<float> mean, deviation;  // statistics of raw features; a deviation is above 0
  std::vector<bool> constant;  // whether the column does not vary; its deviation is a stand-in
};

/// `FeatureStatistics` holds the statistics of each input over the programs that have its rows.
using FeatureStatistics = PerInput<ColumnStatistics>;
FeatureStatistics statistics_of(std::span<const TrainingSample> samples);

/// Turns `weights` for scaled features (the weights have scales) into weights for standardized
/// features, or the reverse if `back`.
void standardize(const FeatureStatistics& statistics, ModelWeights& weights, bool back = false);
/// Sets the weights of constant columns to zero: the network never saw these columns vary.
void forget_constant_columns(const FeatureStatistics& statistics, ModelWeights& weights);

}  // namespace pruner
