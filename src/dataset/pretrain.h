// Trains a model on measured programs, from scratch or from a model that was trained on another
// device. The model's file lists the programs that the model has seen.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "dataset/evaluate.h"
#include "model/boosted_trees.h"

namespace pruner {

struct PretrainOptions {
  std::string model = "pam";  // pam, mlp, tlp or xgb
  std::string load_model;     // model to start from; empty: from scratch
  SplitOptions split;
  double share = 1;           // share of each task's training programs that is used
  bool as_published = false;  // use the published procedure
  int epochs = 0;             // 0: the default; for trees, their number
  double learning_rate = 0;   // 0: the default
  int threads = 1;
  std::string out_file;
  std::string checkpoint_dir = {};  // folder of the weights of a network's five best epochs
  bool resume = false;              // goes on from the state of an interrupted run
};

/// `TrainingPoint` describes an epoch, or the trees so far.
struct TrainingPoint {
  int step = 0;     // epochs, or trees
  double loss = 0;  // moving average over batches; for trees, the root mean squared error
  std::optional<double> learning_rate = {};
  std::optional<double> validation_loss = {}, validation_accuracy = {};
};

/// `PretrainProgress` holds the contents of one line of progress.
struct PretrainProgress {
  bool judged = false;  // the epoch was, or the trees so far were, just judged
  double done = 0;      // share of the training
  TrainingPoint now = {};
  int steps = 0;
  double seconds = 0;
  std::optional<double> eta_s = {};
};

struct PretrainWatch {
  std::function<void(const PretrainProgress&)> on_progress;
  const std::atomic<bool>& stop;
  /// Gets all points so far, after each point; for a resumed network, the earlier points too.
  std::function<Result<Unit>(std::span<const TrainingPoint>)> on_judged = {};
};

struct Pretrained {
  int64_t trained_on = 0, held_out = 0;  // programs
  int64_t tasks = 0;                     // trained on
  TrainReport report;
  std::vector<TrainingPoint> curve;
  bool resumed = false;
  bool interrupted = false;                       // nothing is written but the state for --resume
  std::optional<Evaluation> held_out_evaluation;  // nullopt if nothing is held out
};

/// Returns the name of an epoch's weights file, as in Pruner's scripts: epochs are counted from 0,
/// and the loss is 0 without validation.
std::string checkpoint_name(const TrainingPoint& epoch, std::string_view extension);

/// Trains a model, and takes the features of its training programs out of `table`. Errors: nothing
/// to train on, labels that are all the same, a model of another kind or for other features, a
/// checkpoint of another run.
Result<Pretrained> pretrain(ProgramTable& table,
                            const PretrainOptions& options,
                            const PretrainWatch& watch);

}  // namespace pruner
