#include "dataset/pretrain.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "model/train_state.h"
#include "support/file.h"
#include "support/hash.h"

namespace pruner {
namespace {

constexpr int kDefaultTrees = 300;
constexpr size_t kCheckpoints = 5;  // checkpoints that are kept

uint64_t hash_of(std::span<const uint64_t> values) {
  return hash64({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

std::vector<TrainingPoint> curve_of(const TrainReport& report) {
  std::vector<TrainingPoint> curve;
  for (size_t e = 0; e < report.losses.size(); ++e) {
    TrainingPoint& point = curve.emplace_back();
    point = {.step = static_cast<int>(e) + 1,
             .loss = report.losses[e],
             .learning_rate = report.learning_rates[e]};
    if (e >= report.validation_losses.size()) continue;
    point.validation_loss = report.validation_losses[e];
    point.validation_accuracy = report.validation_accuracy[e];
  }
  return curve;
}

class Pretraining {
 public:
  Pretraining(ProgramTable& table, const PretrainOptions& options, const PretrainWatch& watch)
      : table_(table), options_(options), watch_(watch) {}

  Result<Pretrained> run() {
    TRY(choose());
    if (const Architecture* architecture = find_architecture(options_.model)) {
      TRY(train_network(*architecture));
    } else if (options_.model == "xgb") {
      TRY(train_trees());
    } else {
      return Error("--model ", options_.model, " cannot be trained; use ", trainable_models());
    }
    if (result_.interrupted) return std::move(result_);
    if (split_.test.empty()) return std::move(result_);
    TRY_ASSIGN(const std::unique_ptr<LearnedModel> model,
               load_learned_model(options_.out_file, options_.threads));
    TRY_ASSIGN(result_.held_out_evaluation, evaluate(*model, table_, split_.test));
    return std::move(result_);
  }

 private:
  /// Splits the programs, and takes the training programs out of the table.
  Result<Unit> choose() {
    const SplitColumns columns = table_.columns();
    TRY_ASSIGN(split_, split(columns, options_.split));
    if (options_.share < 1)
      split_.train = draw_share(split_.train, columns, options_.share, options_.split.seed);
    if (split_.train.size() < 2)
      return Error("the training set is empty: ",
                   split_.train.size(),
                   " of ",
                   table_.size(),
                   " programs are left to train on");
    TrainedOn& seen = seen_;
    seen.steps.push_back(fmt::format("{} {}, {} {}, seed {}, share {}",
                                     options_.load_model.empty() ? "train" : "fine-tune",
                                     options_.model,
                                     split_scheme_name(options_.split.scheme),
                                     options_.split.train_ratio,
                                     options_.split.seed,
                                     options_.share));
    std::vector<bool> of(table_.tasks().size());
    for (const size_t p : split_.train) {
      seen.programs.push_back(table_.id()[p]);
      of[table_.samples()[p].task] = true;
    }
    for (size_t t = 0; t < of.size(); ++t)
      if (of[t]) seen.workloads.push_back(hash64(table_.tasks()[t].workload_key));
    for (std::vector<uint64_t>* hashes : {&seen.programs, &seen.workloads}) {
      std::ranges::sort(*hashes);
      hashes->erase(std::ranges::unique(*hashes).begin(), hashes->end());
    }
    result_.trained_on = static_cast<int64_t>(split_.train.size());
    result_.held_out = static_cast<int64_t>(split_.test.size());
    result_.tasks = std::ranges::count(of, true);
    samples_ = table_.take(split_.train);
    return check_labels();
  }

  Result<Unit> check_labels() const {
    const std::vector<float> labels = relative_throughputs(samples_);
    const auto differs = [&](float label) { return label != labels[0]; };
    if (std::ranges::any_of(labels, differs)) return Unit{};
    return Error("all ", labels.size(), " programs of the training set are equally fast");
  }

  TrainOptions train_options(const Architecture& architecture) const {
    const bool fine_tune = !options_.load_model.empty();
    TrainOptions train = published_training(architecture);
    if (options_.as_published && fine_tune) train = published_fine_tuning();
    if (!options_.as_published)
      train = fine_tune ? offline_fine_tuning(samples_.size()) : offline_training(samples_.size());
    if (options_.epochs > 0) train.epochs = options_.epochs;
    if (options_.learning_rate > 0) train.learning_rate = options_.learning_rate;
    train.threads = options_.threads;
    train.seed = options_.split.seed;
    return train;
  }

  Result<ModelWeights> start_weights(const Architecture& architecture) {
    if (options_.load_model.empty()) {
      PrimitiveForm form = primitive_form_of(samples_);
      form.log &= !options_.as_published;
      return initial_weights(architecture, options_.split.seed, form);
    }
    TRY_ASSIGN(ModelWeights weights, load_weights(options_.load_model, architecture));
    weights.mode = "fine_tune_mix_task";
    TrainedOn seen = weights.trained_on.value_or(TrainedOn{.complete = false});
    seen.add(seen_);
    seen_ = std::move(seen);
    weights.trained_on.reset();
    return weights;
  }

  /// Returns a hash that tells this run from others: of its options, programs and first weights.
  std::string run_name(const ModelWeights& start, const TrainOptions& train) const {
    std::vector<uint64_t> all = seen_.programs;
    all.push_back(hash64(fmt::format("{} {} {} {} {} {} {}",
                                     start.architecture->name,
                                     train.epochs,
                                     train.learning_rate,
                                     train.seed,
                                     train.batch,
                                     options_.as_published,
                                     samples_.size())));
    for (const auto& [name, tensor] : start.tensors) {
      const auto bytes = std::as_bytes(std::span(tensor.values));
      all.push_back(hash64({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
    }
    return fmt::format("{:016x}", hash_of(all));
  }

  Result<Unit> train_network(const Architecture& architecture) {
    TRY(check_weights_file(options_.out_file, architecture));
    TRY_ASSIGN(ModelWeights start, start_weights(architecture));
    const TrainOptions train_options = this->train_options(architecture);
    const std::string run = run_name(start, train_options);
    const std::string checkpoint = options_.out_file + ".checkpoint";
    std::optional<TrainState> earlier;
    std::error_code unknown;
    if (options_.resume && std::filesystem::exists(checkpoint, unknown)) {
      TRY_ASSIGN(earlier, load_train_state(checkpoint, run));
      result_.curve = curve_of(earlier->report);
      result_.resumed = true;
    }
    const auto keep = [&](const TrainState& state, const ModelWeights& now) -> Result<Unit> {
      TRY(save_train_state(checkpoint, state, run));
      result_.curve = curve_of(state.report);
      TRY(keep_best_epochs(now));
      const double done = static_cast<double>(state.report.epochs) / train_options.epochs;
      show(done, result_.curve.back(), train_options.epochs, state.report.seconds, true);
      return judged();
    };
    const auto show_batch = [&](const TrainProgress& now) {
      TrainingPoint point{now.report.epochs + 1, now.loss, now.learning_rate};
      if (!result_.curve.empty()) {
        point.validation_loss = result_.curve.back().validation_loss;
        point.validation_accuracy = result_.curve.back().validation_accuracy;
      }
      show(now.epochs / train_options.epochs, point, train_options.epochs, now.seconds, false);
    };
    const TrainWatch watch{.on_batch = show_batch,
                           .on_epoch = keep,
                           .stop = &watch_.stop,
                           .resume = earlier ? &*earlier : nullptr};
    Result<Trained> trained = train(std::move(start), samples_, train_options, watch);
    result_.interrupted = watch_.stop;
    if (result_.interrupted) return Unit{};
    if (!trained.ok()) return trained.error();
    trained->weights.trained_on = std::move(seen_);
    result_.report = std::move(trained->report);
    TRY(save_weights(options_.out_file, trained->weights));
    std::filesystem::remove(checkpoint, unknown);
    return Unit{};
  }

  void show(double done, const TrainingPoint& now, int steps, double seconds, bool judged) const {
    if (!watch_.on_progress) return;
    PretrainProgress line{judged, done, now, steps, seconds};
    if (done > 0) line.eta_s = seconds * (1 - done) / done;
    watch_.on_progress(line);
  }

  Result<Unit> judged() const {
    return watch_.on_judged ? watch_.on_judged(result_.curve) : Unit{};
  }

  /// Writes the weights of the last epoch if it is one of the best so far, and removes those of the
  /// one that thereby is none.
  Result<Unit> keep_best_epochs(ModelWeights now) const {
    if (options_.checkpoint_dir.empty()) return Unit{};
    const std::filesystem::path dir = options_.checkpoint_dir;
    const std::string extension = std::filesystem::path(options_.out_file).extension().string();
    std::vector<TrainingPoint> epochs = result_.curve;
    std::ranges::stable_sort(
        epochs, {}, [](const TrainingPoint& e) { return e.validation_loss.value_or(e.loss); });
    for (size_t i = 0; i < std::min(epochs.size(), kCheckpoints); ++i) {
      if (epochs[i].step != result_.curve.back().step) continue;
      now.trained_on = seen_;
      TRY(save_weights(dir / checkpoint_name(epochs[i], extension), now));
    }
    std::error_code unknown;
    if (epochs.size() > kCheckpoints)
      std::filesystem::remove(dir / checkpoint_name(epochs[kCheckpoints], extension), unknown);
    return Unit{};
  }

  Result<Unit> train_trees() {
    if (options_.out_file.ends_with(".pkl"))
      return Error(options_.out_file, ": trees are kept in xgboost's JSON; name the file .json");
    if (!options_.load_model.empty())
      return Error("fine-tuning needs a network's weights; boosted trees are trained from scratch");
    const BoostOptions boost{
        .boosting = {.rounds = options_.epochs > 0 ? options_.epochs : kDefaultTrees},
        .threads = options_.threads,
        .seed = options_.split.seed,
        .validation_share = offline_training(samples_.size()).validation_share};
    const std::string checkpoint = options_.out_file + ".checkpoint";
    std::optional<BoostedTrees> earlier;
    std::error_code unknown;
    if (options_.resume && std::filesystem::exists(checkpoint, unknown)) {
      TRY_ASSIGN(earlier, read_trees(checkpoint));
      result_.resumed = true;
    }
    const BoostWatch watch{
        .on_progress = [&](const BoostProgress& now) { return show(now, boost, checkpoint); },
        .stop = &watch_.stop,
        .resume = earlier ? &*earlier : nullptr};
    TRY_ASSIGN(BoostedTrees trees, BoostedTrees::fit(samples_, boost, watch));
    result_.interrupted = watch_.stop;
    if (result_.interrupted) return Unit{};
    TRY(trees.set_trained_on(seen_));
    TRY(write_trees(trees, options_.out_file));
    std::filesystem::remove(checkpoint, unknown);
    return Unit{};
  }

  /// Trees of an interrupted run, if of this one.
  Result<BoostedTrees> read_trees(const std::string& path) const {
    TRY_ASSIGN(const std::string json, read_file(path));
    Result<BoostedTrees> trees = BoostedTrees::parse(json, options_.threads);
    if (!trees.ok()) return Error(path, ": ", trees.error().message());
    TRY_ASSIGN(const std::optional<TrainedOn> seen, trees->trained_on());
    if (seen != seen_)
      return Error(path,
                   ": of a run with other options or programs; without --resume it starts anew");
    return trees;
  }

  static Result<Unit> write_trees(const BoostedTrees& trees, const std::string& path) {
    TRY_ASSIGN(const std::string json, trees.print());
    return write_file(path, json);
  }

  Result<Unit> show(const BoostProgress& now,
                    const BoostOptions& boost,
                    const std::string& checkpoint) {
    BoostedTrees trees = now.trees;
    TRY(trees.set_trained_on(seen_));
    TRY(write_trees(trees, checkpoint));
    result_.curve.push_back({.step = now.rounds,
                             .loss = now.error,
                             .validation_loss = now.validation_loss,
                             .validation_accuracy = now.validation_accuracy});
    const double done = static_cast<double>(now.rounds) / boost.boosting.rounds;
    show(done, result_.curve.back(), boost.boosting.rounds, now.seconds, true);
    return judged();
  }

  ProgramTable& table_;
  const PretrainOptions& options_;
  const PretrainWatch& watch_;
  Split split_;
  TrainedOn seen_;
  std::vector<TrainingSample> samples_;
  Pretrained result_;
};

}  // namespace

std::string checkpoint_name(const TrainingPoint& epoch, std::string_view extension) {
  return fmt::format("epoch={}-loss={}-val_loss{}{}",
                     epoch.step - 1,
                     epoch.loss,
                     epoch.validation_loss.value_or(0),
                     extension);
}

Result<Pretrained> pretrain(ProgramTable& table,
                            const PretrainOptions& options,
                            const PretrainWatch& watch) {
  return Pretraining(table, options, watch).run();
}

}  // namespace pruner
