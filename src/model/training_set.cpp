#include "model/training_set.h"

#include <algorithm>
#include <map>

#include "analysis/primitives.h"

namespace pruner {
namespace {

constexpr size_t kLeastValidation = 32;  // fewer held out programs say too little

}  // namespace

PrimitiveForm primitive_form_of(std::span<const TrainingSample> samples) {
  const auto found = std::ranges::find_if(
      samples, [](const TrainingSample& s) { return !s.features.primitives.empty(); });
  const bool gpu = found != samples.end() && has_gpu_primitives(found->features.primitives);
  PrimitiveForm form = gpu ? kGpuPrimitives : kCpuPrimitives;
  form.log = true;
  return form;
}

std::vector<float> relative_throughputs(std::span<const TrainingSample> samples) {
  std::map<int32_t, double> best_s;
  for (const TrainingSample& sample : samples) {
    const auto [row, added] = best_s.try_emplace(sample.task, sample.latency_s);
    row->second = std::min(row->second, sample.latency_s);
  }
  std::vector<float> labels;
  for (const TrainingSample& sample : samples)
    labels.push_back(static_cast<float>(best_s[sample.task] / sample.latency_s));
  return labels;
}

HeldOut hold_out(std::span<const TrainingSample> samples,
                 double share,
                 uint64_t seed,
                 const std::function<bool(const TrainingSample&)>& readable) {
  Rng rng(seed);
  std::map<int32_t, std::vector<size_t>> tasks;
  for (size_t i = 0; i < samples.size(); ++i)
    if (readable(samples[i])) tasks[samples[i].task].push_back(i);
  HeldOut found;
  for (auto& [task, ids] : tasks) {
    shuffle(ids, rng);
    const auto held = static_cast<ptrdiff_t>(share * static_cast<double>(ids.size()));
    const auto middle = ids.begin() + held;
    found.validation_tasks += held > 0;
    found.validation.insert(found.validation.end(), ids.begin(), middle);
    found.train.insert(found.train.end(), middle, ids.end());
  }
  if (found.validation.size() < kLeastValidation) {
    found.train.insert(found.train.end(), found.validation.begin(), found.validation.end());
    found.validation.clear();
    found.validation_tasks = 0;
  }
  return found;
}

FeatureScales scales_of(std::span<const TrainingSample> samples) {
  FeatureScales scales;
  for (const Input input : kScaledInputs) {
    std::vector<float>& largest = scales[input];
    largest.resize(static_cast<size_t>(input_row(input).width));
    for (const TrainingSample& sample : samples) {
      const std::span<const float> numbers = input_row(input).numbers(sample.features);
      for (size_t n = 0; n < numbers.size(); ++n)
        largest[n % largest.size()] = std::max(largest[n % largest.size()], numbers[n]);
    }
    for (float& scale : largest) scale = scale > 0 ? scale : 1;
  }
  return scales;
}

void widen_scales(const FeatureScales& scales, ModelWeights& weights) {
  for (const ScaledLayer& layer : scaled_layers(weights)) {
    const std::vector<float>& wide = scales[layer.input];
    std::vector<float>& own = layer.scale;
    if (own.empty()) own = wide;
    for (size_t j = 0; j < own.size(); ++j) {
      if (!(wide[j] > own[j])) continue;
      const float ratio = own[j] == 1 ? 1 : wide[j] / own[j];
      for (size_t k = j; k < layer.weight.values.size(); k += own.size())
        layer.weight.values[k] *= ratio;
      own[j] = wide[j];
    }
  }
}

double pairwise_accuracy(std::span<const float> scores,
                         std::span<const float> labels,
                         std::span<const int32_t> tasks) {
  std::map<int32_t, std::vector<size_t>> members;
  for (size_t i = 0; i < tasks.size(); ++i) members[tasks[i]].push_back(i);
  double sum = 0;
  for (const auto& [task, ids] : members) {
    int64_t alike = 0, pairs = 0;
    for (size_t i = 0; i < ids.size(); ++i) {
      for (size_t j = i + 1; j < ids.size(); ++j, ++pairs)
        alike += (scores[ids[i]] > scores[ids[j]]) == (labels[ids[i]] > labels[ids[j]]);
    }
    const double accuracy =
        pairs > 0 ? static_cast<double>(alike) / static_cast<double>(pairs) : 0.5;
    sum += accuracy * static_cast<double>(ids.size());
  }
  return tasks.empty() ? 0.5 : sum / static_cast<double>(tasks.size());
}

}  // namespace pruner
