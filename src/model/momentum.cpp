#include "model/momentum.h"

namespace pruner {

Result<bool> MomentumAdaptation::update(std::span<const TrainingSample> samples,
                                        const TrainOptions& options) {
  if (++rounds_ % options_.period != 0) return false;
  const FeatureScales scales = scales_of(samples);
  if (options_.replace_scales) {
    for (const Branch& branch : branches_of(*siamese_.architecture))
      siamese_.scale[branch.input] = scales[branch.input];
  } else {
    widen_scales(scales, siamese_);
  }
  TRY_ASSIGN(Trained trained, train(siamese_, samples, options));
  const float kept = static_cast<float>(options_.momentum);
  for (auto& [name, tensor] : siamese_.tensors) {
    if (is_statistic(name)) continue;
    const std::vector<float>& towards = trained.weights.tensors[name].values;
    for (size_t i = 0; i < tensor.values.size(); ++i)
      tensor.values[i] = kept * tensor.values[i] + (1 - kept) * towards[i];
  }
  target_ = std::move(trained.weights);
  return true;
}

}  // namespace pruner
