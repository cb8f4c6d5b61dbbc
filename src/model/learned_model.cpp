#include "model/learned_model.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "model/boosted_trees.h"
#include "model/momentum.h"
#include "model/nn/network.h"
#include "model/nn/trainer.h"
#include "model/shipped_weights.h"
#include "support/file.h"
#include "support/log.h"

namespace pruner {
namespace {

// The cost of training is counted in passes over a program (160 us of a core each). A sample pays
// for `kPassesASample` passes, a tenth of the time that measuring the sample takes. A training
// waits until the samples have paid for it.
constexpr double kPassesASample = 40;
constexpr double kPassesATraining = 3000;
constexpr int kLeastEpochs = 3, kMostEpochs = 30;

/// `TreesForm` says how a system trains its boosted trees.
struct TreesForm {
  std::string_view name;
  Boosting boosting;
  /// `least_samples` is the number of samples from which on the trees score, whatever the options
  /// say; 0: the options decide.
  int64_t least_samples = 0;
  /// The trees are trained again when the samples have grown by the share `growth` since the last
  /// training. If `growth` < 0, the samples must have paid for the training.
  double growth = -1;
  bool blind_to_units = false;
};
constexpr TreesForm kTrees[] = {
    {"xgb", {}}, {"xgb-metaschedule", kMetaScheduleBoosting, 100, 0.2, /*blind_to_units=*/true}};

const TreesForm* find_trees(std::string_view name) {
  const auto* found = std::ranges::find(kTrees, name, &TreesForm::name);
  return found == std::end(kTrees) ? nullptr : found;
}

enum class Updates { kOnline, kNone, kSiamese };

/// `OnlineModel` is the common part of networks and trees: the samples so far, and when to train.
class OnlineModel : public LearnedModel {
 public:
  OnlineModel(Updates updates, const LearnedModelOptions& options)
      : updates_(updates), options_(options) {}

  Result<Unit> update(std::span<const TrainingSample> samples) override {
    if (updates_ == Updates::kNone) return Unit{};
    std::ranges::copy_if(samples, std::back_inserter(samples_), [&](const TrainingSample& s) {
      return reads_primitives() ? !s.features.primitives.empty() : !s.features.rows.empty();
    });
    if (samples_.size() < 2) return Unit{};
    passes_ += kPassesASample * static_cast<double>(samples.size());
    return is_due() ? learn() : Unit{};
  }

 protected:
  /// Returns whether to train on the samples so far.
  virtual bool is_due() {
    const double cost = epochs() * static_cast<double>(samples_.size());
    if (options_.as_published || updates_ == Updates::kSiamese) return true;
    if (passes_ < cost) return false;
    passes_ -= cost;
    return true;
  }
  virtual Result<Unit> learn() = 0;

  // Returns the number of epochs of the next training.
  int epochs() const {
    const double affordable = kPassesATraining / static_cast<double>(samples_.size());
    return std::clamp(static_cast<int>(affordable), kLeastEpochs, kMostEpochs);
  }

  Updates updates_;
  LearnedModelOptions options_;
  std::vector<TrainingSample> samples_;
  double passes_ = 0;  // unspent passes that samples have paid for
};

class NetworkModel : public OnlineModel {
 public:
  NetworkModel(const Architecture& architecture,
               Updates updates,
               const LearnedModelOptions& options,
               std::optional<ModelWeights> loaded)
      : OnlineModel(updates, options), architecture_(architecture) {
    if (!loaded) return;
    if (updates == Updates::kSiamese)
      momentum_.emplace(*loaded,
                        MomentumOptions{.period = options.momentum_period,
                                        .replace_scales = options.as_published});
    use(*std::move(loaded));
  }

  bool ready() const override { return network_.has_value(); }
  bool reads_primitives() const override { return architecture_.reads(Input::kPrimitives); }

  Result<Unit> save(const std::string& path) const override {
    if (!weights_) return Error(path, ": there are no weights to save before the first training");
    return save_weights(path, *weights_);
  }

  Result<std::optional<TrainedOn>> trained_on() const override {
    return weights_ ? weights_->trained_on : std::nullopt;
  }

 protected:
  Result<std::vector<float>> scores(std::span<const ProgramFeatures> programs) override {
    if (!network_) return std::vector<float>();
    if (reads_primitives() && !programs.empty()) {
      const bool gpu = weights_->form.gpu;
      if (has_gpu_primitives(programs[0].primitives) != gpu)
        return Error(
            "weights of a ", architecture_.title, " for programs of a ", gpu ? "GPU" : "CPU");
    }
    return network_->predict(programs, options_.jobs);
  }

  Result<Unit> learn() override {
    const bool scratch = options_.as_published || !weights_;
    TrainOptions train_options =
        options_.as_published ? published_training(architecture_) : TrainOptions{};
    if (!options_.as_published) train_options.epochs = epochs();
    train_options.time_box_s = options_.time_box_s;
    train_options.threads = options_.training_threads;
    train_options.seed = options_.seed + ++trainings_;
    if (momentum_) {
      TRY_ASSIGN(const bool trained, momentum_->update(samples_, train_options));
      if (trained) use(momentum_->target());
      return Unit{};
    }
    ModelWeights start =
        scratch ? initial_weights(architecture_, options_.seed, primitive_form_of(samples_))
                : *weights_;
    if (!train_options.widen_scales && weights_) start.scale = weights_->scale;
    TRY_ASSIGN(Trained trained, train(std::move(start), samples_, train_options));
    log_detail("cost model: {} epochs on {} programs, {:.2f} s, {:.0f} programs/s",
               trained.report.epochs,
               samples_.size(),
               trained.report.seconds,
               trained.report.samples_per_s);
    use(std::move(trained.weights));
    return Unit{};
  }

 private:
  void use(ModelWeights weights) {
    network_.emplace(weights, head_of(weights, options_.platform));
    weights_ = std::move(weights);
  }

  const Architecture& architecture_;
  std::optional<MomentumAdaptation> momentum_;
  std::optional<ModelWeights> weights_;
  std::optional<Network> network_;
  uint64_t trainings_ = 0;
};

class TreesModel : public OnlineModel {
 public:
  TreesModel(const TreesForm& form,
             Updates updates,
             const LearnedModelOptions& options,
             std::optional<BoostedTrees> loaded)
      : OnlineModel(updates, options),
        form_(form),
        least_samples_(loaded                   ? 0
                       : form.least_samples > 0 ? form.least_samples
                       : options.as_published   ? options.warm_up_samples + 1
                                                : 0),
        trees_(std::move(loaded)),
        rng_(options.seed) {}

  bool ready() const override { return trees_ || warms_up(); }
  bool is_blind_to_units() const override { return form_.blind_to_units; }

  Result<Unit> save(const std::string& path) const override {
    if (!trees_) return Error(path, ": there are no trees to save before the first training");
    TRY_ASSIGN(const std::string json, trees_->print());
    return write_file(path, json);
  }

  Result<std::optional<TrainedOn>> trained_on() const override {
    if (!trees_) return std::optional<TrainedOn>();
    return trees_->trained_on();
  }

 protected:
  Result<std::vector<float>> scores(std::span<const ProgramFeatures> programs) override {
    if (warms_up()) {
      std::vector<float> drawn(programs.size());
      for (float& score : drawn) score = static_cast<float>(rng_.uniform());
      return drawn;
    }
    if (!trees_) return std::vector<float>();
    return trees_->predict(programs);
  }

  Result<Unit> learn() override {
    const BoostOptions boost{.boosting = form_.boosting,
                             .threads = options_.training_threads,
                             .time_box_s = options_.time_box_s};
    TRY_ASSIGN(trees_, BoostedTrees::fit(samples_, boost));
    return Unit{};
  }

  bool is_due() override {
    if (form_.growth < 0) return OnlineModel::is_due();
    const auto count = static_cast<double>(samples_.size());
    if (count < (1 + form_.growth) * trained_on_) return false;
    trained_on_ = count;
    return true;
  }

 private:
  bool warms_up() const { return std::ssize(samples_) < least_samples_; }

  const TreesForm& form_;
  int64_t least_samples_;  // number of samples from which on the trees score
  double trained_on_ = 0;  // samples of the last training
  std::optional<BoostedTrees> trees_;
  Rng rng_;
};

Result<std::unique_ptr<LearnedModel>> make_trees(const TreesForm& form,
                                                 Updates updates,
                                                 const LearnedModelOptions& options) {
  std::optional<BoostedTrees> loaded;
  if (!options.load_model.empty()) {
    TRY_ASSIGN(const std::string json, read_file(options.load_model));
    Result<BoostedTrees> trees = BoostedTrees::parse(json, options.jobs);
    if (!trees.ok()) return Error(options.load_model, ": ", trees.error().message());
    loaded = *std::move(trees);
  }
  return std::unique_ptr<LearnedModel>(
      std::make_unique<TreesModel>(form, updates, options, std::move(loaded)));
}

// xgboost's JSON; checkpoints are binary.
bool is_text_object(const std::string& content) {
  return content.starts_with('{') && content.find('\0') == std::string::npos;
}

struct UpdatesRow {
  std::string_view suffix;
  Updates updates;
};
constexpr UpdatesRow kUpdates[] = {
    {"-no-update", Updates::kNone}, {"-siamese-update", Updates::kSiamese}, {"", Updates::kOnline}};

struct ParsedName {
  const Architecture* network;  // null: boosted trees
  const TreesForm* trees;
  Updates updates;
};

Result<ParsedName> parse_name(std::string_view name) {
  for (const UpdatesRow& row : kUpdates) {
    if (!name.ends_with(row.suffix)) continue;
    const std::string_view stem = name.substr(0, name.size() - row.suffix.size());
    const Architecture* network = find_architecture(stem);
    const TreesForm* trees = find_trees(stem);
    if (network != nullptr || trees != nullptr) return ParsedName{network, trees, row.updates};
  }
  return Error("cost model ",
               name,
               " is unknown; use ",
               trainable_models(),
               ", or one of these with -no-update or -siamese-update");
}

constexpr const char* kNotANumber = "NaN";

}  // namespace

std::string trainable_models() {
  return or_list([](const Architecture& a) { return std::string(a.command); },
                 std::string(kTrees[0].name));
}

std::optional<std::string> fault_of(std::span<const float> scores,
                                    std::span<const ProgramFeatures> programs) {
  if (std::any_of(scores.begin(), scores.end(), [](float s) { return std::isnan(s); }))
    return kNotANumber;
  const auto differs = [&](size_t i) { return scores[i] != scores[0]; };
  for (size_t i = 1; i < scores.size(); ++i)
    if (differs(i)) return std::nullopt;
  for (size_t i = 1; i < scores.size(); ++i)
    if (!(programs[i] == programs[0])) return "the same for all programs";
  return std::nullopt;
}

std::vector<float> LearnedModel::predict(std::span<const ProgramFeatures> programs) {
  Result<std::vector<float>> found = scores(programs);
  if (!found.ok()) {
    fault_ = found.error().message();
    return {};
  }
  const std::optional<std::string> useless = fault_of(*found, programs);
  if (!useless) return *std::move(found);
  if (*useless == kNotANumber) {
    fault_ = kNotANumber;
  } else if (!reported_) {
    log_warning("the cost model's scores are {}: it orders nothing yet", *useless);
    reported_ = true;
  }
  return {};
}

Result<Unit> find_libraries_of(std::string_view name) {
  TRY_ASSIGN(const ParsedName parsed, parse_name(name));
  if (parsed.network == nullptr) return BoostedTrees::find_library();  // it scores with it, too
  return parsed.updates == Updates::kNone ? Unit{} : find_torch();
}

Result<std::unique_ptr<LearnedModel>> make_learned_model(std::string_view name,
                                                         const LearnedModelOptions& options) {
  TRY_ASSIGN(const ParsedName parsed, parse_name(name));
  if (parsed.updates != Updates::kOnline && options.load_model.empty())
    return Error("cost model ", name, " needs weights to start from: --load-model FILE");
  const auto by_momentum = [](const Architecture& a) {
    return std::string(a.has_momentum ? a.command : "");
  };
  const bool has_momentum = parsed.network != nullptr && parsed.network->has_momentum;
  if (parsed.updates == Updates::kSiamese && !has_momentum)
    return Error("cost model ",
                 name,
                 ": ",
                 parsed.network != nullptr ? std::string(parsed.network->title) + " has no momentum"
                                           : "momentum needs a network's weights",
                 "; use ",
                 or_list(by_momentum));
  if (parsed.network == nullptr) return make_trees(*parsed.trees, parsed.updates, options);
  std::optional<ModelWeights> loaded;
  if (!options.load_model.empty()) {
    TRY_ASSIGN(loaded, load_weights(options.load_model, *parsed.network));
  }
  return std::unique_ptr<LearnedModel>(
      std::make_unique<NetworkModel>(*parsed.network, parsed.updates, options, std::move(loaded)));
}

Result<std::unique_ptr<LearnedModel>> load_learned_model(const std::string& path, int jobs) {
  const LearnedModelOptions options{.load_model = path, .jobs = jobs};
  TRY_ASSIGN(const std::string content, read_model_file(path));
  if (is_text_object(content)) return make_trees(kTrees[0], Updates::kNone, options);
  TRY_ASSIGN(ModelWeights weights, load_weights(path));
  return std::unique_ptr<LearnedModel>(std::make_unique<NetworkModel>(
      *weights.architecture, Updates::kNone, options, std::move(weights)));
}

}  // namespace pruner
