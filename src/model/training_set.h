// Samples for the training of learned models: the features and latencies of measured programs.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "analysis/features.h"
#include "model/weights.h"
#include "support/rng.h"

namespace pruner {

struct TrainingSample {
  int32_t task = 0;  // samples of one task are compared with each other
  ProgramFeatures features;
  double latency_s = 0;   // 1e10 when the trial failed
  int32_t platform = -1;  // index in ModelWeights::heads of the measuring device; -1: none
};

/// Returns the form of a TLP for the samples' kind of device: the published form's size, with
/// arguments by their logarithm.
PrimitiveForm primitive_form_of(std::span<const TrainingSample> samples);

/// Returns one label a sample: the best latency of its task over the sample's, in (0, 1].
std::vector<float> relative_throughputs(std::span<const TrainingSample> samples);

/// `HeldOut` holds the indices of the readable samples: those to train on and those to judge by.
struct HeldOut {
  std::vector<size_t> train, validation;
  int validation_tasks = 0;
};
/// Holds a share of each task's samples out, the same samples for one seed. Nothing is held out if
/// the held-out samples would be too few to say something.
HeldOut hold_out(std::span<const TrainingSample> samples,
                 double share,
                 uint64_t seed,
                 const std::function<bool(const TrainingSample&)>& readable);

/// Shuffles by the one source of chance.
template <typename T>
void shuffle(std::vector<T>& all, Rng& rng) {
  for (size_t i = all.size(); i > 1; --i)
    std::swap(all[i - 1], all[rng.below(static_cast<int64_t>(i))]);
}

/// Returns the maximum of each input's columns over the samples, or 1 if it is not above 0.
FeatureScales scales_of(std::span<const TrainingSample> samples);

/// Raises each scale of `weights` to at least its value in `scales`. The first layers' columns make
/// up for the larger divisor, so the network stays the same. If a scale was 1 and grows, its column
/// was zero so far, and the column keeps its weights. Weights without scales take `scales`.
void widen_scales(const FeatureScales& scales, ModelWeights& weights);

/// Returns TenSet's pairwise comparison accuracy: the share of pairs within a task that scores and
/// labels order alike. Tasks are weighted by their number of samples; one sample has 0.5.
double pairwise_accuracy(std::span<const float> scores,
                         std::span<const float> labels,
                         std::span<const int32_t> tasks);

}  // namespace pruner
