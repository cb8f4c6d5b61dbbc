// pruner train, pruner fine-tune: feature files -> a model's file, and how well it does.
#include "cli/commands.h"
#include "cli/model_options.h"
#include "model/weights.h"

namespace pruner {

namespace {

struct Train : TrainingOptions {
  Result<int> run(const Invocation& call) const {
    if (datasets.empty()) return Error("train: no dataset is named; give one with --dataset FILE");
    return train_folds(*this, call);
  }
};

struct FineTune : TrainingOptions {
  void add_to(CLI::App& app) {
    TrainingOptions::add_to(app);
    begin_group(app, OptionGroup::kModel);
    add_option(app, "--load-model,--model-file FILE", pretrain.load_model)
        .help("a trained model: safetensors, .pkl, .pth, or xgboost's JSON");
  }

  Result<int> run(const Invocation& call) {
    if (datasets.empty())
      return Error("fine-tune: no dataset is named; give one with --dataset FILE");
    if (pretrain.load_model.empty())
      return Error("fine-tune: no model to start from is named; give one with --load-model FILE");
    TRY_ASSIGN(const ModelWeights weights, load_weights(pretrain.load_model));
    // --model has no say: the file knows whose weights they are.
    pretrain.model = weights.architecture->name;
    return train_folds(*this, call);
  }
};

}  // namespace

RunCommand make_train(CLI::App& app) { return make_command<Train>(app); }
RunCommand make_fine_tune(CLI::App& app) { return make_command<FineTune>(app); }

}  // namespace pruner
