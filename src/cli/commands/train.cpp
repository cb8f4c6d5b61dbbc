// pruner train, pruner fine-tune: feature files -> a model's file, and how well it does.
#include "cli/commands.h"
#include "cli/model_options.h"
#include "model/weights.h"

namespace pruner {

Result<int> run_train(const Options& options) {
  if (options.datasets.empty())
    return Error("train: no dataset is named; give one with --dataset FILE");
  TRY_ASSIGN(const PretrainOptions pretrain, pretrain_options(options));
  return train_folds(options, pretrain);
}

Result<int> run_fine_tune(const Options& options) {
  if (options.datasets.empty())
    return Error("fine-tune: no dataset is named; give one with --dataset FILE");
  if (options.load_model.empty())
    return Error("fine-tune: no model to start from is named; give one with --load-model FILE");
  TRY_ASSIGN(PretrainOptions pretrain, pretrain_options(options));
  TRY_ASSIGN(const ModelWeights weights, load_weights(options.load_model));
  pretrain.model = weights.architecture->name;
  return train_folds(options, pretrain);
}

}  // namespace pruner
