// Where a training leaves what it makes: its model, and the weights of its best epochs.
#pragma once

#include <string>

#include "cli/model_options.h"
#include "dataset/pretrain.h"

namespace pruner {

/// Names the file of a fold's model, and the folder of its checkpoints with --save-path, which is
/// made: -o; else, as Pruner's scripts name it, in a folder of the fold; else in this folder.
/// `tasks`: of the dataset.
Result<Unit> name_model_files(const TrainingOptions& options,
                              int64_t fold,
                              size_t tasks,
                              PretrainOptions& pretrain);

/// FILE.ext -> FILE.training.tsv, FILE.training.svg.
std::string training_file(const std::string& model, std::string_view extension);

}  // namespace pruner
