// --dataset, --model, --split and the rest -> what a training or a judgement of a model works with.
#pragma once

#include <memory>

#include "cli/options.h"
#include "dataset/pretrain.h"

namespace pruner {

/// A training: of `train`, and of `fine-tune`.
struct TrainingOptions {
  PretrainOptions pretrain;
  std::vector<std::string> datasets;
  std::string split_scheme = "within_task", training, save_path;
  int64_t folds = 1, file_count = 0;

  void add_to(CLI::App& app);  // without --load-model, with which `fine-tune` goes on
};

/// The programs of feature files; says what was left out, and names the targets where there are
/// several.
Result<ProgramTable> read_datasets(const std::vector<std::string>& datasets);

/// What trains the first fold, but for the file to write.
Result<PretrainOptions> pretrain_options(const TrainingOptions& options);

/// Trains each fold, showing its progress and its metrics on what it held out.
Result<int> train_folds(const TrainingOptions& options, PretrainOptions pretrain, bool json);

}  // namespace pruner
