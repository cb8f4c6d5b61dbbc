// Training of the cost models' networks: weights to start from and measured programs in, weights
// and a report out. LibTorch does it (nn/trainer.h); the loop, the loss and the choice of batches
// are here. One seed, and no time box, gives one result.
#pragma once

#include <limits>
#include <span>
#include <string>
#include <vector>

#include "model/nn/trainer.h"
#include "model/training_set.h"

namespace pruner {

inline constexpr double kNoTimeBox = std::numeric_limits<double>::infinity();

struct TrainOptions {
  Optimizer optimizer = Optimizer::kAdam;
  double learning_rate = 7e-4;  // halved every third of the epochs when there are 70 or more
  double weight_decay = 1e-6;
  double clip_norm = 0.5;  // of the gradients; 0: none
  int epochs = 50;
  int batch = 512;  // programs
  /// Epochs without a better moving average of the loss before it stops; 0: never.
  int patience = 16;
  /// The loss compares programs of one task only, and a batch holds whole runs of a task.
  bool group_by_task = true;
  /// Of each task's samples, held out; the weights of the epoch that ranks them best are kept. 0:
  /// nothing held out, the last weights are kept.
  double validation_share = 0.1;
  /// Widens the scales to the samples' maxima; otherwise the start's are kept.
  bool widen_scales = true;
  double time_box_s = kNoTimeBox;
  int threads = 1;
  uint64_t seed = 0;
};

/// As Pruner and TenSet train from scratch: batches and pairs of all tasks mixed, last weights
/// kept.
TrainOptions published_training(Architecture architecture);
/// As Pruner fine-tunes pretrained weights on a target's records: plain SGD, scales kept.
TrainOptions published_fine_tuning();

struct TrainReport {
  int epochs = 0;
  int best_epoch = 0;                       // whose weights were kept, counted from 1
  std::vector<double> losses;               // mean loss of a batch, per epoch
  std::vector<double> validation_accuracy;  // pairwise, per epoch
  double seconds = 0;
  double samples_per_s = 0;
  std::string stopped;  // "all epochs", "no better loss" or "time box"
};

struct Trained {
  ModelWeights weights;
  TrainReport report;
};

/// ModelWeights as torch draws them for new layers; no scales yet, the first training gives them. A
/// TLP is of `form` (primitive_form_of() its samples); with `platforms` it has a decoder for each
/// and one for others.
ModelWeights initial_weights(Architecture architecture,
                             uint64_t seed,
                             const PrimitiveForm& form = kCpuPrimitives,
                             std::span<const std::string> platforms = {});

/// The head of a platform in a TLP of several; a new one starts as the other platforms' is. Weights
/// with one decoder stay as they are, and the head is 0.
size_t add_platform(ModelWeights& weights, const std::string& platform);

/// Samples without what the network reads are left out. Each program of a TLP with several heads
/// trains that of its platform and that of the others. Errors: fewer than two programs are left;
/// they are another kind of device's than the weights'; the plug-in is missing.
Result<Trained> train(ModelWeights start,
                      std::span<const TrainingSample> samples,
                      const TrainOptions& options);

}  // namespace pruner
