// pruner train, pruner fine-tune: feature files -> a model's file, and how well it does.
#include <fmt/format.h>

#include <filesystem>

#include "cli/commands.h"
#include "cli/model_options.h"
#include "model/weights.h"

namespace pruner {

static std::string stem_of(const std::string& path) {
  return std::filesystem::path(path).stem().string();
}

Result<int> run_train(const Options& options) {
  if (options.datasets.empty())
    return Error("train: no dataset is named; give one with --dataset FILE");
  TRY_ASSIGN(const PretrainOptions pretrain, pretrain_options(options));
  return train_folds(options, pretrain, pretrain.model + "_" + stem_of(options.datasets[0]));
}

Result<int> run_fine_tune(const Options& options) {
  if (options.datasets.empty())
    return Error("fine-tune: no dataset is named; give one with --dataset FILE");
  if (options.load_model.empty())
    return Error("fine-tune: no model to start from is named; give one with --load-model FILE");
  TRY_ASSIGN(PretrainOptions pretrain, pretrain_options(options));
  TRY_ASSIGN(const ModelWeights weights, load_weights(options.load_model));
  pretrain.model = architecture_name(weights.architecture);
  return train_folds(options, pretrain, "fine_tune_" + stem_of(options.load_model));
}

}  // namespace pruner
