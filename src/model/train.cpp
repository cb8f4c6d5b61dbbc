#include "model/train.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <numbers>

#include "model/nn/network.h"
#include "model/nn/standardize.h"
#include "support/rng.h"

namespace pruner {
namespace {

using Clock = std::chrono::steady_clock;
using Ids = std::vector<size_t>;  // indices of samples

constexpr double kKept = 0.95;    // share of the moving average of the loss that a batch keeps
constexpr double kWarmUp = 0.05;  // share of all batches in which the learning rate rises
constexpr double kOfflinePasses = 1.5e6;  // passes over programs a training from files may cost

class Training {
 public:
  Training(std::span<const TrainingSample> samples,
           const TrainOptions& options,
           const TrainWatch& watch)
      : samples_(samples),
        options_(options),
        watch_(watch),
        labels_(relative_throughputs(samples)) {}

  Result<Trained> run(ModelWeights start) {
    TRY(begin(std::move(start)));
    while (state_.report.epochs < options_.epochs) {
      TRY(train_epoch());
      if (interrupted()) {
        state_.report.stopped = "interrupted";
        break;
      }
      TRY(end_epoch());
      if (out_of_time()) {
        state_.report.stopped = "time box";
        break;
      }
      if (options_.patience > 0 && state_.without_better >= options_.patience) {
        state_.report.stopped = "no better loss";
        break;
      }
    }
    TrainReport& report = state_.report;
    report.samples_per_s = static_cast<double>(trained_programs_) / (seconds() - earlier_s_);
    report.seconds = seconds();
    if (report.best_epoch == 0)
      return report.stopped == "interrupted"
                 ? Error("training was interrupted within its first epoch")
                 : Error("training failed: no epoch has a loss that is a number");
    weights_.tensors = std::move(state_.best);
    if (statistics_) standardize(*statistics_, weights_, /*back=*/true);
    const Result<Unit> checked = check_weights(weights_);
    if (!checked.ok()) return Error("training failed: ", checked.error().message());
    return Trained{std::move(weights_), std::move(report)};
  }

 private:
  Result<Unit> begin(ModelWeights start) {
    const Architecture& architecture = *start.architecture;
    held_ = hold_out(samples_, options_.validation_share, options_.seed, [&](const auto& sample) {
      return is_readable(sample.features, architecture);
    });
    for (const size_t id : held_.validation) validation_.push_back(samples_[id].features);
    if (held_.train.size() < 2)
      return Error("training needs two programs, there are ", held_.train.size());
    if (architecture.reads(Input::kPrimitives) && primitive_form_of(samples_).gpu != start.form.gpu)
      return Error("the weights are of a ",
                   architecture.title,
                   " for programs of a ",
                   start.form.gpu ? "GPU" : "CPU",
                   ", the samples are of a ",
                   start.form.gpu ? "CPU" : "GPU");
    const bool fresh = start.scale[branches_of(architecture)[0].input].empty();
    if (options_.widen_scales || fresh) widen_scales(scales_of(samples_), start);
    weights_ = std::move(start);
    if (options_.standardize) {
      statistics_ = statistics_of(samples_);
      if (fresh) {
        forget_constant_columns(*statistics_, weights_);
      } else {
        standardize(*statistics_, weights_);
      }
    }
    if (watch_.resume != nullptr) {
      state_ = *watch_.resume;
      weights_.tensors = state_.tensors;
      earlier_s_ = state_.report.seconds;
    }
    TRY_ASSIGN(trainer_,
               make_torch_trainer(weights_,
                                  {.optimizer = options_.optimizer,
                                   .weight_decay = options_.weight_decay,
                                   .threads = options_.threads}));
    TRY(trainer_->set_optimizer_state(state_.optimizer));
    begin_ = Clock::now();
    state_.report.stopped = "all epochs";
    return Unit{};
  }

  /// Judges the epoch's weights, and keeps them if they are the best.
  Result<Unit> end_epoch() {
    TRY_ASSIGN(state_.tensors, trainer_->tensors());
    TrainReport& report = state_.report;
    const ModelWeights now = current_weights();
    if (!held_.validation.empty()) validate(now);
    const std::vector<double>& validated = report.validation_losses;
    const double loss = validated.empty() ? state_.average : validated.back();
    const bool better = loss < state_.least_loss;
    state_.without_better = better ? 0 : state_.without_better + 1;
    if (better) state_.least_loss = loss;
    if (better || validated.empty()) {
      state_.best = state_.tensors;
      report.best_epoch = report.epochs;
    }
    if (!watch_.on_epoch) return Unit{};
    report.seconds = seconds();
    TRY_ASSIGN(state_.optimizer, trainer_->optimizer_state());
    return watch_.on_epoch(state_, now);
  }

  /// Returns the epoch's order: all samples mixed, or runs of one task mixed. Each epoch has its
  /// own random numbers, so that a resumed training draws the same as an uninterrupted one.
  Ids epoch_order() const {
    Rng rng = epoch_chance();
    Ids order = held_.train;
    shuffle(order, rng);
    if (!options_.group_by_task) return order;
    std::map<int32_t, Ids> tasks;
    for (const size_t id : order) tasks[samples_[id].task].push_back(id);
    std::vector<std::span<const size_t>> runs;
    for (const auto& [task, ids] : tasks) {
      const auto run = static_cast<size_t>(options_.run);
      for (size_t first = 0; first < ids.size(); first += run)
        runs.push_back(std::span(ids).subspan(first, std::min(run, ids.size() - first)));
    }
    shuffle(runs, rng);
    order.clear();
    for (const std::span<const size_t> run : runs)
      order.insert(order.end(), run.begin(), run.end());
    return order;
  }

  Rng epoch_chance() const {
    Rng seeds(options_.seed + 1);
    uint64_t seed = 0;
    for (int e = 0; e <= state_.report.epochs; ++e) seed = seeds.next();
    return Rng(seed);
  }

  TrainingBatch batch_of(std::span<const size_t> ids) const {
    std::vector<const ProgramFeatures*> programs;
    for (const size_t id : ids) programs.push_back(&samples_[id].features);
    TrainingBatch batch;
    for (const auto& [input, layer] : branches_of(*weights_.architecture)) {
      RowForm form{.divisor = weights_.scale[input], .primitives = weights_.form};
      if (statistics_) {
        form.divisor = (*statistics_)[input].deviation;
        form.mean = (*statistics_)[input].mean;
      }
      batch.branches.push_back(make_tokens(input, programs, form));
    }
    return batch;
  }

  Result<Unit> train_epoch() {
    const Ids order = epoch_order();
    const size_t width = static_cast<size_t>(options_.batch);
    bool first_batch = state_.report.epochs == 0;
    for (size_t first = 0; first + 1 < order.size(); first += width) {
      if (out_of_time() || interrupted()) break;
      const auto ids = std::span(order).subspan(first, std::min(width, order.size() - first));
      if (ids.size() < 2) break;  // no pair, and no statistics for batch norm
      share_ = static_cast<double>(first) / static_cast<double>(order.size());
      TRY_ASSIGN(const double loss, train_batch(ids));
      state_.average = first_batch ? loss : kKept * state_.average + (1 - kKept) * loss;
      first_batch = false;
      trained_programs_ += ids.size();
      if (watch_.on_batch)
        watch_.on_batch({state_.report,
                         state_.report.epochs + share_,
                         state_.average,
                         learning_rate(),
                         seconds()});
    }
    if (interrupted()) return Unit{};
    state_.report.losses.push_back(state_.average);
    state_.report.learning_rates.push_back(learning_rate());
    ++state_.report.epochs;
    return Unit{};
  }

  Result<double> train_batch(std::span<const size_t> ids) {
    TrainingBatch batch = batch_of(ids);
    std::vector<float> labels;
    std::vector<int32_t> groups;  // one per score: its task, and its head if there are several
    const auto request = [&](size_t place, size_t head) {
      const auto heads = static_cast<int32_t>(std::max<size_t>(weights_.heads.size(), 1));
      const int32_t task = options_.group_by_task ? samples_[ids[place]].task : 0;
      labels.push_back(labels_[ids[place]]);
      groups.push_back(task * heads + static_cast<int32_t>(head));
      batch.requests.push_back({static_cast<int64_t>(place), static_cast<int64_t>(head)});
    };
    const size_t shared = head_of(weights_, kOtherPlatform);
    for (size_t i = 0; i < ids.size(); ++i) {
      request(i, shared);
      if (const size_t own = head_of_sample(ids[i]); own != shared) request(i, own);
    }
    TRY_ASSIGN(const std::vector<float> scores, trainer_->forward(batch));
    const RankingLoss loss = ranking_loss(options_.loss, scores, labels, groups);
    TRY(trainer_->step(loss.gradient, learning_rate(), options_.clip_norm));
    return loss.loss;
  }

  size_t head_of_sample(size_t id) const {
    const auto platform = static_cast<size_t>(samples_[id].platform);  // -1: beyond any
    return platform < weights_.heads.size() ? platform : head_of(weights_, kOtherPlatform);
  }

  double learning_rate() const {
    const int epochs = state_.report.epochs;
    if (options_.schedule == Schedule::kCosine) {
      const double done = (epochs + share_) / options_.epochs;
      if (done < kWarmUp) return options_.learning_rate * (0.05 + 0.95 * done / kWarmUp);
      const double phase = std::numbers::pi * (done - kWarmUp) / (1 - kWarmUp);
      return options_.learning_rate * 0.5 * (1 + std::cos(phase));
    }
    if (options_.epochs < 70) return options_.learning_rate;
    return options_.learning_rate * std::pow(0.5, epochs / (options_.epochs / 3));
  }

  ModelWeights current_weights() const {
    ModelWeights weights = weights_;
    weights.tensors = state_.tensors;
    if (statistics_) standardize(*statistics_, weights, /*back=*/true);
    return weights;
  }

  void validate(const ModelWeights& weights) {
    std::vector<float> labels;
    std::vector<int32_t> tasks;
    for (const size_t id : held_.validation) {
      labels.push_back(labels_[id]);
      tasks.push_back(samples_[id].task);
    }
    const std::vector<float> scores = validation_scores(weights);
    TrainReport& report = state_.report;
    report.validation_losses.push_back(ranking_loss(options_.loss, scores, labels, tasks).loss /
                                       held_.validation_tasks);
    report.validation_accuracy.push_back(pairwise_accuracy(scores, labels, tasks));
  }

  /// Scores each held-out program by the head of its platform.
  std::vector<float> validation_scores(const ModelWeights& weights) const {
    if (weights.heads.empty()) return Network(weights).predict(validation_, options_.threads);
    std::vector<float> scores(validation_.size());
    for (size_t head = 0; head < weights.heads.size(); ++head) {
      std::vector<size_t> places;
      std::vector<ProgramFeatures> programs;
      for (size_t i = 0; i < validation_.size(); ++i) {
        if (head_of_sample(held_.validation[i]) != head) continue;
        places.push_back(i);
        programs.push_back(validation_[i]);
      }
      const std::vector<float> found = Network(weights, head).predict(programs, options_.threads);
      for (size_t i = 0; i < places.size(); ++i) scores[places[i]] = found[i];
    }
    return scores;
  }

  /// Returns the seconds of this training and, if it goes on, of the earlier ones.
  double seconds() const {
    return earlier_s_ + std::chrono::duration<double>(Clock::now() - begin_).count();
  }
  /// Returns false before the first batch, so that a training always changes something.
  bool out_of_time() const { return trained_programs_ > 0 && seconds() > options_.time_box_s; }
  bool interrupted() const { return watch_.stop != nullptr && *watch_.stop; }

  std::span<const TrainingSample> samples_;
  const TrainOptions& options_;
  const TrainWatch& watch_;
  std::vector<float> labels_;
  HeldOut held_;
  std::vector<ProgramFeatures> validation_;  // held out
  ModelWeights weights_;
  std::optional<FeatureStatistics> statistics_;
  std::unique_ptr<Trainer> trainer_;
  TrainState state_;
  double share_ = 0;  // share of the epoch that is done
  Clock::time_point begin_;
  double earlier_s_ = 0;
  size_t trained_programs_ = 0;
};

}  // namespace

TrainOptions published_training(const Architecture& architecture) {
  const PublishedTraining& own = architecture.training;
  return {.batch = own.batch,
          .patience = own.patience,
          .group_by_task = false,
          .validation_share = own.validation_share,
          .widen_scales = own.widen_scales};
}

TrainOptions offline_training(size_t programs) {
  TrainOptions options;
  options.learning_rate = 1e-3;
  options.schedule = Schedule::kCosine;
  const double affordable = kOfflinePasses / static_cast<double>(programs);
  options.epochs = std::clamp(static_cast<int>(affordable), 12, 60);
  options.batch = 128;
  options.run = 16;
  options.patience = 6;
  options.loss = RankingLossKind::kPairs;
  options.standardize = true;
  options.validation_share = 0.05;
  return options;
}

TrainOptions offline_fine_tuning(size_t programs) {
  TrainOptions options = offline_training(programs);
  options.epochs = 6;
  options.patience = 0;
  return options;
}

TrainOptions published_fine_tuning() {
  return {.optimizer = Optimizer::kSgd,
          .weight_decay = 0,
          .clip_norm = 0,
          .patience = 0,
          .group_by_task = false,
          .validation_share = 0,
          .widen_scales = false};
}

ModelWeights initial_weights(const Architecture& architecture,
                             uint64_t seed,
                             const PrimitiveForm& form,
                             std::span<const std::string> platforms) {
  Rng rng(seed);
  ModelWeights weights{
      .architecture = &architecture, .form = form, .heads = {platforms.begin(), platforms.end()}};
  if (!platforms.empty()) weights.heads.emplace_back(kOtherPlatform);
  for (const WeightSpec& spec : tensor_specs(weights)) {
    WeightTensor tensor{spec.shape, std::vector<float>(spec.element_count(), spec.fill)};
    const int64_t columns = spec.shape.back(), drawn = spec.drawn > 0 ? spec.drawn : columns;
    for (int64_t i = 0; spec.bound > 0 && i < std::ssize(tensor.values); ++i) {
      if (i % columns < drawn)
        tensor.values[static_cast<size_t>(i)] =
            static_cast<float>(spec.bound * (2 * rng.uniform() - 1));
    }
    weights.tensors[spec.name] = std::move(tensor);
  }
  return weights;
}

size_t add_platform(ModelWeights& weights, const std::string& platform) {
  const size_t found = head_of(weights, platform);
  if (weights.heads.empty() || weights.heads[found] == platform) return found;
  const std::string from = head_module(weights, found) + ".";
  weights.heads.insert(weights.heads.end() - 1, platform);
  const size_t added = weights.heads.size() - 2;
  const std::string to = head_module(weights, added) + ".";
  for (const auto& [name, tensor] : Tensors(weights.tensors))
    if (name.starts_with(from)) weights.tensors[to + name.substr(from.size())] = tensor;
  return added;
}

Result<Trained> train(ModelWeights start,
                      std::span<const TrainingSample> samples,
                      const TrainOptions& options,
                      const TrainWatch& watch) {
  return Training(samples, options, watch).run(std::move(start));
}

}  // namespace pruner
