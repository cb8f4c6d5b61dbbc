// Momentum online Adaptation (MoA; Pruner, section 4.5) makes the target's weights from pretrained
// ones. They follow the target's measurements; the pretrained weights drift slowly after.
#pragma once

#include <span>

#include "model/train.h"

namespace pruner {

struct MomentumOptions {
  double momentum = 0.99;  // share of its weights that the siamese network keeps at an update
  int period = 4;          // rounds from one training to the next; the paper: 1
  /// If true, the records' scales replace the siamese network's as in the released code, though its
  /// weights expect the old scales. If false, its scales are widened; its function stays the same.
  bool replace_scales = false;
};

class MomentumAdaptation {
 public:
  MomentumAdaptation(ModelWeights pretrained, const MomentumOptions& options)
      : options_(options), siamese_(pretrained), target_(std::move(pretrained)) {}

  /// Returns the weights that predict: the pretrained weights, then the weights trained last.
  const ModelWeights& target() const { return target_; }
  /// Returns the weights that each training starts from.
  const ModelWeights& siamese() const { return siamese_; }

  /// Ends a round of measuring; `samples` are all samples of the run. Every `period` rounds,
  /// update() trains a copy of the siamese network and returns true. The siamese network then moves
  /// 1 - momentum of the way towards the copy, except for batch norm's statistics.
  Result<bool> update(std::span<const TrainingSample> samples, const TrainOptions& options);

 private:
  MomentumOptions options_;
  ModelWeights siamese_, target_;
  int rounds_ = 0;
};

}  // namespace pruner
