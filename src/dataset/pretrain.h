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
  bool resume = false;  // goes on from what an interrupted run left
};

/// One line's worth.
struct PretrainProgress {
  bool judged = false;      // the epoch, or the trees so far, have just been judged
  double done = 0;          // share of the training
  int step = 0, steps = 0;  // epochs, or trees
  double loss = 0;
  std::optional<double> validation_loss = {}, validation_accuracy = {};
  double seconds = 0;
  std::optional<double> eta_s = {};
};

struct PretrainWatch {
  std::function<void(const PretrainProgress&)> on_progress;
  const std::atomic<bool>& stop;
};

struct Pretrained {
  int64_t trained_on = 0, held_out = 0;  // programs
  int64_t tasks = 0;                     // trained on
  TrainReport report;
  bool resumed = false;
  bool interrupted = false;  // nothing is written but what --resume goes on from
  std::optional<Evaluation> held_out_evaluation;  // none where nothing is held out
};

/// Takes the features of what it trains on out of `table`. Errors: nothing to train on, labels that
/// are all the same, a model of another kind or for other features, a checkpoint of another run.
Result<Pretrained> pretrain(ProgramTable& table,
                            const PretrainOptions& options,
                            const PretrainWatch& watch);

}  // namespace pruner
