// --dataset, --model, --split and the rest -> what a training or a judgement of a model works with.
#pragma once

#include <memory>

#include "cli/options.h"
#include "dataset/pretrain.h"

namespace pruner {

/// --threads, or all cores.
int thread_count(const Options& options);

/// The programs of --dataset; says what was left out, and names the targets where there are
/// several.
Result<ProgramTable> read_datasets(const Options& options);

/// Everything but the file to write, for the first fold.
Result<PretrainOptions> pretrain_options(const Options& options);

/// Trains each fold, showing its progress and its metrics on what it held out.
Result<int> train_folds(const Options& options, PretrainOptions pretrain);

}  // namespace pruner
