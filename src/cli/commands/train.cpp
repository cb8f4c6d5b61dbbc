// pruner train, pruner fine-tune: feature files -> a model's file, and how well it does.
#include "cli/commands.h"
#include "cli/model_options.h"
#include "model/weights.h"

namespace pruner {

namespace {

struct Train {
  TrainingOptions options;

  void add_to(CLI::App& app) { options.add_to(app); }
  Result<int> run(const Invocation& call) const {
    if (options.datasets.empty())
      return Error("train: no dataset is named; give one with --dataset FILE");
    TRY_ASSIGN(const PretrainOptions pretrain, pretrain_options(options));
    return train_folds(options, pretrain, call.json);
  }
};

struct FineTune {
  TrainingOptions options;

  void add_to(CLI::App& app) {
    options.add_to(app);
    add_trained_model(app, options.pretrain.load_model);
  }
  Result<int> run(const Invocation& call) const {
    if (options.datasets.empty())
      return Error("fine-tune: no dataset is named; give one with --dataset FILE");
    if (options.pretrain.load_model.empty())
      return Error("fine-tune: no model to start from is named; give one with --load-model FILE");
    TRY_ASSIGN(PretrainOptions pretrain, pretrain_options(options));
    TRY_ASSIGN(const ModelWeights weights, load_weights(pretrain.load_model));
    pretrain.model = weights.architecture->name;
    return train_folds(options, pretrain, call.json);
  }
};

}  // namespace

RunCommand make_train(CLI::App& app) { return make_command<Train>(app); }
RunCommand make_fine_tune(CLI::App& app) { return make_command<FineTune>(app); }

}  // namespace pruner
