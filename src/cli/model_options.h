// --dataset, --model, --split and the rest -> what a training or a judgement of a model works with.
#pragma once

#include <string>
#include <vector>

#include "cli/options.h"
#include "dataset/pretrain.h"

namespace pruner {

/// A training: of `train`, and of `fine-tune`.
struct TrainingOptions {
  PretrainOptions pretrain;
  std::vector<std::string> datasets;  // feature files
  std::string split_scheme = "within_task", training, save_path;
  int64_t folds = 1, file_count = 0;  // trainings; --file-cnt, 0: the dataset's tasks

  void add_to(CLI::App& app);  // without --load-model, with which `fine-tune` goes on
};

/// The programs of feature files; says what was left out, and names the targets where there are
/// several.
Result<ProgramTable> read_datasets(const std::vector<std::string>& datasets);

/// Names the file of a fold's model, and the folder of its checkpoints with --save-path, which is
/// made: -o; else, as Pruner's scripts name it, in a folder of the fold; else in this folder.
/// `tasks`: of the dataset.
Result<Unit> name_model_files(const TrainingOptions& options,
                              int64_t fold,
                              size_t tasks,
                              PretrainOptions& pretrain);

/// FILE.ext -> FILE.training.tsv, FILE.training.svg.
std::string training_file(const std::string& model, std::string_view extension);

/// Trains each fold, showing its progress and its metrics on what it held out.
Result<int> train_folds(const TrainingOptions& options, const Invocation& call);

}  // namespace pruner
