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
  double clip_norm = 0.5;  // greatest L2 norm of the gradients; 0: no clipping
  int epochs = 50;
  int batch = 512;  // programs
  int run = 64;     // programs of one task that stay together in a batch
  /// Training stops after so many epochs without a better loss; 0: never. The loss is that of the
  /// held-out programs, or the moving average of the batches' losses if nothing is held out.
  int patience = 16;
  RankingLossKind loss = RankingLossKind::kLambdaRank;
  /// If true, the loss compares programs of one task only, and a batch holds runs of a task.
  bool group_by_task = true;
  /// `validation_share` is the share of each task's samples that is held out; the weights of the
  /// epoch that ranks the held-out samples best are kept. If 0, the last weights are kept.
  double validation_share = 0.1;
  /// If true, the scales are widened to the samples' maxima; otherwise the start's are kept.
  bool widen_scales = true;
  /// If true, features have mean 0 and deviation 1 in training; the first layers adapt afterwards.
  bool standardize = false;
  double time_box_s = kNoTimeBox;
  int threads = 1;
  uint64_t seed = 0;
};

/// Returns the options of the published scripts that train from scratch: batches and pairs mix all
/// tasks. The last weights are kept if nothing is held out (Pruner, TenSet).
TrainOptions published_training(const Architecture& architecture);
/// Returns the options with which Pruner fine-tunes pretrained weights on a target's records: plain
/// SGD, scales kept.
TrainOptions published_fine_tuning();

struct TrainReport {
  int epochs = 0;
  int best_epoch = 0;                     // epoch whose weights were kept, counted from 1
  std::vector<double> losses;             // moving average over batches, at each epoch's end
  std::vector<double> learning_rates;     // rate of each epoch's last batch
  std::vector<double> validation_losses;  // loss of the held-out programs, mean of tasks, per epoch
  std::vector<double> validation_accuracy;  // pairwise, per epoch
  double seconds = 0;
  double samples_per_s = 0;
  std::string stopped;  // "all epochs", "no better loss", "time box" or "interrupted"
};

/// `TrainState` is a training between two epochs. A training resumed with the same samples and
/// options comes to the same end.
struct TrainState {
  Tensors tensors, best;  // tensors of the standardized network if the training standardizes
  Tensors optimizer;
  double average = 0;  // moving average of the batches' losses: 0.95 of the old, 0.05 of the next
  double least_loss = std::numeric_limits<double>::infinity();
  int without_better = 0;
  TrainReport report;
};

/// `TrainProgress` is the state of a training after a batch.
struct TrainProgress {
  const TrainReport& report;  // report on the whole epochs so far
  double epochs = 0;          // epochs done, with the part of this epoch
  double loss = 0;            // moving average over batches
  double learning_rate = 0;
  double seconds = 0;
};

/// `TrainWatch` holds the observers of a training. All fields may be empty.
struct TrainWatch {
  std::function<void(const TrainProgress&)> on_batch;
  /// `now` holds the epoch's weights in the form that scores.
  std::function<Result<Unit>(const TrainState& state, const ModelWeights& now)> on_epoch;
  const std::atomic<bool>* stop = nullptr;  // ends the training with the best weights so far
  const TrainState* resume = nullptr;
};

struct Trained {
  ModelWeights weights;
  TrainReport report;
};

/// Returns weights as torch draws them for new layers. The first training sets the scales. A
/// network that reads primitives has the form `form` (primitive_form_of() its samples). With
/// `platforms`, the network has a head for each platform and one for others.
ModelWeights initial_weights(const Architecture& architecture,
                             uint64_t seed,
                             const PrimitiveForm& form = kCpuPrimitives,
                             std::span<const std::string> platforms = {});

/// Returns the options for training on records from files: those that order unseen programs best in
/// the least time (bench/offline.py). Fewer programs get more epochs.
TrainOptions offline_training(size_t programs);
/// Returns the options for weights that go on to learn from records of another device: those of
/// offline_training() with few epochs. With more epochs the network learns those tasks by heart and
/// orders other tasks worse than before.
TrainOptions offline_fine_tuning(size_t programs);

/// Returns the head of a platform among several heads. If the platform has no head, a copy of the
/// other platforms' head is added. Weights with one head stay as they are, and the head is 0.
size_t add_platform(ModelWeights& weights, const std::string& platform);

/// Trains on the samples that have the input that the network reads. With several heads, each
/// program trains its platform's head and the other platforms' head. Errors: fewer than two
/// programs are left; the weights are for another kind of device; the plug-in is missing.
Result<Trained> train(ModelWeights start,
                      std::span<const TrainingSample> samples,
                      const TrainOptions& options,
                      const TrainWatch& watch = {});

}  // namespace pruner
