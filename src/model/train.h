// Training of the cost models' networks: weights to start from and measured programs in, weights
// and a report out. LibTorch does it (nn/trainer.h); the loop, the loss and the choice of batches
// are here. One seed, and no time box, gives one result.
#pragma once

#include <atomic>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/nn/trainer.h"
#include "model/ranking_loss.h"
#include "model/training_set.h"

namespace pruner {

inline constexpr double kNoTimeBox = std::numeric_limits<double>::infinity();

enum class Schedule {
  kSteps,   // halved every third of the epochs when there are 70 or more
  kCosine,  // up in the first twentieth of the batches, then down to nothing as a cosine
};

struct TrainOptions {
  Optimizer optimizer = Optimizer::kAdam;
  double learning_rate = 7e-4;
  Schedule schedule = Schedule::kSteps;
  double weight_decay = 1e-6;
  double clip_norm = 0.5;  // of the gradients; 0: none
  int epochs = 50;
  int batch = 512;  // programs
  int run = 64;     // of these, programs of one task that stay together
  /// Epochs without a better loss of what is held out, or moving average of the batches' where
  /// nothing is, before it stops; 0: never.
  int patience = 16;
  RankingLossKind loss = RankingLossKind::kLambdaRank;
  /// The loss compares programs of one task only, and a batch holds runs of a task.
  bool group_by_task = true;
  /// Of each task's samples, held out; the weights of the epoch that ranks them best are kept. 0:
  /// nothing held out, the last weights are kept.
  double validation_share = 0.1;
  /// Widens the scales to the samples' maxima; otherwise the start's are kept.
  bool widen_scales = true;
  /// Features of mean 0 and deviation 1 while it trains; the first layers make up for it after.
  bool standardize = false;
  double time_box_s = kNoTimeBox;
  int threads = 1;
  uint64_t seed = 0;
};

/// As Pruner and TenSet train from scratch: batches and pairs of all tasks mixed, last weights
/// kept.
TrainOptions published_training(const Architecture& architecture);
/// As Pruner fine-tunes pretrained weights on a target's records: plain SGD, scales kept.
TrainOptions published_fine_tuning();

struct TrainReport {
  int epochs = 0;
  int best_epoch = 0;                       // whose weights were kept, counted from 1
  std::vector<double> losses;               // moving average over batches, at each epoch's end
  std::vector<double> learning_rates;       // of each epoch's last batch
  std::vector<double> validation_losses;    // of the programs held out, mean of tasks, per epoch
  std::vector<double> validation_accuracy;  // pairwise, per epoch
  double seconds = 0;
  double samples_per_s = 0;
  std::string stopped;  // "all epochs", "no better loss", "time box" or "interrupted"
};

/// A training between two epochs: with the same samples and options it goes on to the same end.
struct TrainState {
  Tensors tensors, best;  // of the standardized network, if it is one
  Tensors optimizer;
  double average = 0;  // moving, of the batches' losses: 0.95 of it and 0.05 of the next
  double least_loss = std::numeric_limits<double>::infinity();
  int without_better = 0;
  TrainReport report;
};

/// Where a training stands.
struct TrainProgress {
  const TrainReport& report;  // of whole epochs
  double epochs = 0;          // done, the part of this one included
  double loss = 0;            // moving average over batches
  double learning_rate = 0;
  double seconds = 0;
};

/// Who looks on. All may be empty.
struct TrainWatch {
  std::function<void(const TrainProgress&)> on_batch;
  /// `now`: the epoch's weights, as they score.
  std::function<Result<Unit>(const TrainState& state, const ModelWeights& now)> on_epoch;
  const std::atomic<bool>* stop = nullptr;  // ends the training with the best weights so far
  const TrainState* resume = nullptr;
};

struct Trained {
  ModelWeights weights;
  TrainReport report;
};

/// ModelWeights as torch draws them for new layers; no scales yet, the first training gives them. A
/// network of primitives is of `form` (primitive_form_of() its samples); with `platforms` it has a
/// head for each and one for others.
ModelWeights initial_weights(const Architecture& architecture,
                             uint64_t seed,
                             const PrimitiveForm& form = kCpuPrimitives,
                             std::span<const std::string> platforms = {});

/// As records of files are trained on: what orders programs best that it has not seen, in the least
/// time (bench/offline.py). Fewer programs are passed over more often.
TrainOptions offline_training(size_t programs);
/// As weights go on to learn from records of another device: a few epochs of offline_training().
/// More make the network know those tasks by heart, and order others worse than it did.
TrainOptions offline_fine_tuning(size_t programs);

/// The head of a platform among several; a new one starts as the other platforms' is. Weights
/// with one stay as they are, and the head is 0.
size_t add_platform(ModelWeights& weights, const std::string& platform);

/// Samples without what the network reads are left out. Of several heads each program
/// trains that of its platform and that of the others. Errors: fewer than two programs are left;
/// they are another kind of device's than the weights'; the plug-in is missing.
Result<Trained> train(ModelWeights start,
                      std::span<const TrainingSample> samples,
                      const TrainOptions& options,
                      const TrainWatch& watch = {});

}  // namespace pruner
