// Measured programs -> a trained model's file that knows what it has seen: from scratch, or from a
// model that was trained on another device.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "dataset/evaluate.h"
#include "model/boosted_trees.h"

namespace pruner {

struct PretrainOptions {
  std::string model = "pam";  // pam, mlp, tlp or xgb
  std::string load_model;     // to start from; empty: from scratch
  SplitOptions split;
  double share = 1;           // of each task's programs on the side of training
  bool as_published = false;  // with the published procedure
  int epochs = 0;             // 0: the default; of trees: how many
  double learning_rate = 0;   // 0: the default
  int threads = 1;
  std::string out_file;
  std::string checkpoint_dir = {};  // of a network: for the weights of its five best epochs
  bool resume = false;              // goes on from what an interrupted run left
};

/// An epoch, or the trees so far.
struct TrainingPoint {
  int step = 0;     // epochs, or trees
  double loss = 0;  // moving average over batches; of trees the root of the mean squared error
  std::optional<double> learning_rate = {};
  std::optional<double> validation_loss = {}, validation_accuracy = {};
};

/// One line's worth.
struct PretrainProgress {
  bool judged = false;  // the epoch, or the trees so far, have just been judged
  double done = 0;      // share of the training
  TrainingPoint now = {};
  int steps = 0;
  double seconds = 0;
  std::optional<double> eta_s = {};
};

struct PretrainWatch {
  std::function<void(const PretrainProgress&)> on_progress;
  const std::atomic<bool>& stop;
  /// Gets all points so far, after each; of a network that is resumed, the earlier ones too.
  std::function<Result<Unit>(std::span<const TrainingPoint>)> on_judged = {};
};

struct Pretrained {
  int64_t trained_on = 0, held_out = 0;  // programs
  int64_t tasks = 0;                     // trained on
  TrainReport report;
  std::vector<TrainingPoint> curve;
  bool resumed = false;
  bool interrupted = false;  // nothing is written but what --resume goes on from
  std::optional<Evaluation> held_out_evaluation;  // none where nothing is held out
};

/// The name of the file of an epoch's weights, as Pruner's scripts have it: epochs are counted from
/// 0, and without validation its loss is 0.
std::string checkpoint_name(const TrainingPoint& epoch, std::string_view extension);

/// Takes the features of what it trains on out of `table`. Errors: nothing to train on, labels that
/// are all the same, a model of another kind or for other features, a checkpoint of another run.
Result<Pretrained> pretrain(ProgramTable& table,
                            const PretrainOptions& options,
                            const PretrainWatch& watch);

}  // namespace pruner
