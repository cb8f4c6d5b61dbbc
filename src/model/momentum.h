// Momentum online Adaptation (MoA; Pruner, section 4.5): pretrained weights in, weights for
// the target out, which follow what is measured there while the pretrained ones drift slowly after.
#pragma once

#include <span>

#include "model/train.h"

namespace pruner {

struct MomentumOptions {
  double momentum = 0.99;  // what the siamese network keeps of itself at an update
  int period = 4;          // rounds from one training to the next; the paper: 1
  /// As released: the records' scales replace the siamese network's, whose weights expect others.
  /// Otherwise they are widened and the network is left as it was.
  bool replace_scales = false;
};

class MomentumAdaptation {
 public:
  MomentumAdaptation(ModelWeights pretrained, const MomentumOptions& options)
      : options_(options), siamese_(pretrained), target_(std::move(pretrained)) {}

  /// What predicts: the pretrained network, then the one trained last.
  const ModelWeights& target() const { return target_; }
  /// Where each training starts.
  const ModelWeights& siamese() const { return siamese_; }

  /// After a round of measuring; `samples`: all of the run. True when it trained: a copy of the
  /// siamese network, which then moves 1 - momentum of the way towards it (batch norm's statistics
  /// do not).
  Result<bool> update(std::span<const TrainingSample> samples, const TrainOptions& options);

 private:
  MomentumOptions options_;
  ModelWeights siamese_, target_;
  int rounds_ = 0;
};

}  // namespace pruner
