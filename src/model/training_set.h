// What learned models train on: the features of measured programs and how long they took.
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
  int32_t platform = -1;  // place in ModelWeights::heads of what it was measured on; -1: not there
};

/// The form of a TLP for the samples' kind of device: the published one's size, arguments by their
/// logarithm.
PrimitiveForm primitive_form_of(std::span<const TrainingSample> samples);

/// One label a sample: the best latency of its task over its own, in (0, 1].
std::vector<float> relative_throughputs(std::span<const TrainingSample> samples);

/// Samples that can be read, by place: those to train on and those to judge by.
struct HeldOut {
  std::vector<size_t> train, validation;
  int validation_tasks = 0;
};
/// Holds a share of each task's samples out, the same for one seed; nothing, where that would be
/// too little to say something.
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

/// The maximum of each input's columns over the samples, 1 where that is not above 0.
FeatureScales scales_of(std::span<const TrainingSample> samples);

/// The same network for features divided by larger scales: each scale becomes its maximum with that
/// of `scales`, and the first layers' columns make up for it. A column whose scale was 1 and grows
/// was zero so far, and keeps its weights. ModelWeights without scales take those given.
void widen_scales(const FeatureScales& scales, ModelWeights& weights);

/// Share of the pairs within a task that scores and labels order alike, weighted by the task's
/// number of samples; 0.5 for a task with one sample (TenSet's pairwise comparison accuracy).
double pairwise_accuracy(std::span<const float> scores,
                         std::span<const float> labels,
                         std::span<const int32_t> tasks);

}  // namespace pruner
