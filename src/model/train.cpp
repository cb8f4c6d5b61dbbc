#include "model/train.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "model/lambda_rank.h"
#include "model/nn/any_network.h"
#include "support/rng.h"

namespace pruner {
namespace {

using Clock = std::chrono::steady_clock;
using Ids = std::vector<size_t>;  // of samples

constexpr size_t kRun = 64;              // programs of one task that stay together in a batch
constexpr size_t kLeastValidation = 32;  // fewer held out programs say too little
constexpr double kKept = 0.95;           // of the moving average of the loss, a batch

void shuffle(Ids& ids, Rng& rng) {
  for (size_t i = ids.size(); i > 1; --i)
    std::swap(ids[i - 1], ids[static_cast<size_t>(rng.below(static_cast<int64_t>(i)))]);
}

class Training {
 public:
  Training(std::span<const TrainingSample> samples, const TrainOptions& options)
      : samples_(samples),
        options_(options),
        labels_(relative_throughputs(samples)),
        rng_(options.seed) {}

  Result<Trained> run(ModelWeights start) {
    split(start.architecture);
    if (ids_.size() < 2) return Error("training needs two programs, there are ", ids_.size());
    const bool tlp = start.architecture == Architecture::kTlp;
    if (tlp && primitive_form_of(samples_).gpu != start.form.gpu)
      return Error("the weights are of a TLP for programs of a ",
                   start.form.gpu ? "GPU" : "CPU",
                   ", the samples are of a ",
                   start.form.gpu ? "CPU" : "GPU");
    if (options_.widen_scales || start.row_scale.empty()) widen_scales(scales_of(samples_), start);
    weights_ = std::move(start);
    TRY_ASSIGN(trainer_,
               make_torch_trainer(weights_,
                                  {.optimizer = options_.optimizer,
                                   .weight_decay = options_.weight_decay,
                                   .threads = options_.threads}));
    begin_ = Clock::now();
    report_.stopped = "all epochs";
    double best_accuracy = -1, least_average = std::numeric_limits<double>::infinity();
    int without_better = 0;
    Tensors best;
    while (report_.epochs < options_.epochs) {
      TRY(train_epoch());
      TRY_ASSIGN(weights_.tensors, trainer_->tensors());
      const double accuracy = validation_ids_.empty() ? 0 : validate();
      if (validation_ids_.empty() || accuracy > best_accuracy) {
        best_accuracy = accuracy;
        best = weights_.tensors;
        report_.best_epoch = report_.epochs;
      }
      if (out_of_time()) {
        report_.stopped = "time box";
        break;
      }
      without_better = average_ < least_average ? 0 : without_better + 1;
      least_average = std::min(least_average, average_);
      if (options_.patience > 0 && without_better >= options_.patience) {
        report_.stopped = "no better loss";
        break;
      }
    }
    weights_.tensors = std::move(best);
    report_.seconds = seconds();
    report_.samples_per_s = static_cast<double>(trained_programs_) / report_.seconds;
    const Result<Unit> checked = check_weights(weights_);
    if (!checked.ok()) return Error("training failed: ", checked.error().message());
    return Trained{std::move(weights_), std::move(report_)};
  }

 private:
  /// Holds samples of each task out, the same for one seed.
  void split(Architecture architecture) {
    std::map<int32_t, Ids> tasks;
    for (size_t i = 0; i < samples_.size(); ++i)
      if (is_readable(samples_[i].features, architecture)) tasks[samples_[i].task].push_back(i);
    for (auto& [task, ids] : tasks) {
      shuffle(ids, rng_);
      const auto held =
          static_cast<ptrdiff_t>(options_.validation_share * static_cast<double>(ids.size()));
      validation_ids_.insert(validation_ids_.end(), ids.begin(), ids.begin() + held);
      ids_.insert(ids_.end(), ids.begin() + held, ids.end());
    }
    if (validation_ids_.size() < kLeastValidation) {
      ids_.insert(ids_.end(), validation_ids_.begin(), validation_ids_.end());
      validation_ids_.clear();
    }
    for (const size_t id : validation_ids_) validation_.push_back(samples_[id].features);
  }

  /// The epoch's order: everything mixed, or runs of one task mixed.
  Ids epoch_order() {
    Ids order = ids_;
    shuffle(order, rng_);
    if (!options_.group_by_task) return order;
    std::map<int32_t, Ids> tasks;
    for (const size_t id : order) tasks[samples_[id].task].push_back(id);
    std::vector<std::span<const size_t>> runs;
    for (const auto& [task, ids] : tasks) {
      for (size_t first = 0; first < ids.size(); first += kRun)
        runs.push_back(std::span(ids).subspan(first, std::min(kRun, ids.size() - first)));
    }
    Ids places(runs.size());
    for (size_t i = 0; i < places.size(); ++i) places[i] = i;
    shuffle(places, rng_);
    order.clear();
    for (const size_t place : places)
      order.insert(order.end(), runs[place].begin(), runs[place].end());
    return order;
  }

  TrainingBatch batch_of(std::span<const size_t> ids) const {
    TrainingBatch batch;
    if (weights_.architecture == Architecture::kTlp) {
      std::vector<const ProgramFeatures*> programs;
      for (const size_t id : ids) programs.push_back(&samples_[id].features);
      batch.primitives = make_primitive_batch(programs, weights_.form);
      batch.programs = static_cast<int64_t>(ids.size());
      return batch;
    }
    for (const size_t id : ids) {
      const ProgramFeatures& program = samples_[id].features;
      for (size_t i = 0; i < program.rows.size(); ++i)
        batch.rows.push_back(program.rows[i] / weights_.row_scale[i % kRowFeatures]);
      batch.program_of_row.insert(
          batch.program_of_row.end(), program.row_count(), batch.programs++);
      if (weights_.architecture != Architecture::kPacm) continue;
      for (size_t i = 0; i < program.dataflow.size(); ++i)
        batch.dataflow.push_back(program.dataflow[i] /
                                 weights_.dataflow_scale[i % kDataflowFeatures]);
    }
    batch.dataflow.resize(ids.size() * kDataflowSteps * kDataflowFeatures);
    return batch;
  }

  Result<Unit> train_epoch() {
    const Ids order = epoch_order();
    const size_t width = static_cast<size_t>(options_.batch);
    double sum = 0;
    int batches = 0;
    for (size_t first = 0; first + 1 < order.size() && !out_of_time(); first += width) {
      const auto ids = std::span(order).subspan(first, std::min(width, order.size() - first));
      if (ids.size() < 2) break;  // no pair, and no statistics for batch norm
      TRY_ASSIGN(const double loss, train_batch(ids));
      average_ = trained_programs_ == 0 ? loss : kKept * average_ + (1 - kKept) * loss;
      trained_programs_ += ids.size();
      sum += loss;
      ++batches;
    }
    ++report_.epochs;
    report_.losses.push_back(sum / std::max(batches, 1));
    return Unit{};
  }

  Result<double> train_batch(std::span<const size_t> ids) {
    TrainingBatch batch = batch_of(ids);
    std::vector<float> labels;
    std::vector<int32_t> groups;  // by task, and by head where there are several
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
    const RankingLoss loss = lambda_rank(scores, labels, groups);
    TRY(trainer_->step(loss.gradient, learning_rate(), options_.clip_norm));
    return loss.loss;
  }

  size_t head_of_sample(size_t id) const {
    const auto platform = static_cast<size_t>(samples_[id].platform);  // -1: beyond any
    return platform < weights_.heads.size() ? platform : head_of(weights_, kOtherPlatform);
  }

  double learning_rate() const {
    if (options_.epochs < 70) return options_.learning_rate;
    return options_.learning_rate * std::pow(0.5, report_.epochs / (options_.epochs / 3));
  }

  double validate() {
    std::vector<float> labels;
    std::vector<int32_t> tasks;
    for (const size_t id : validation_ids_) {
      labels.push_back(labels_[id]);
      tasks.push_back(samples_[id].task);
    }
    const std::vector<float> scores = validation_scores();
    report_.validation_accuracy.push_back(pairwise_accuracy(scores, labels, tasks));
    return report_.validation_accuracy.back();
  }

  /// Each by the head of its platform.
  std::vector<float> validation_scores() const {
    if (weights_.heads.empty()) return AnyNetwork(weights_).predict(validation_, options_.threads);
    std::vector<float> scores(validation_.size());
    for (size_t head = 0; head < weights_.heads.size(); ++head) {
      std::vector<size_t> places;
      std::vector<ProgramFeatures> programs;
      for (size_t i = 0; i < validation_.size(); ++i) {
        if (head_of_sample(validation_ids_[i]) != head) continue;
        places.push_back(i);
        programs.push_back(validation_[i]);
      }
      const std::vector<float> found =
          AnyNetwork(weights_, head).predict(programs, options_.threads);
      for (size_t i = 0; i < places.size(); ++i) scores[places[i]] = found[i];
    }
    return scores;
  }

  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }
  /// Never before the first batch: a training changes something.
  bool out_of_time() const { return trained_programs_ > 0 && seconds() > options_.time_box_s; }

  std::span<const TrainingSample> samples_;
  const TrainOptions& options_;
  std::vector<float> labels_;
  Rng rng_;
  Ids ids_, validation_ids_;
  std::vector<ProgramFeatures> validation_;
  ModelWeights weights_;
  std::unique_ptr<Trainer> trainer_;
  Clock::time_point begin_;
  size_t trained_programs_ = 0;
  double average_ = 0;  // moving, of the batches' losses
  TrainReport report_;
};

}  // namespace

TrainOptions published_training(Architecture architecture) {
  TrainOptions options;
  options.patience = architecture == Architecture::kPacm ? options.epochs / 3 : options.epochs / 6;
  options.group_by_task = false;
  options.validation_share = 0;
  if (architecture == Architecture::kTlp) {
    options.patience = 0;
    options.batch = 1024;
    options.validation_share = 0.1;
  }
  return options;
}

TrainOptions published_fine_tuning() {
  TrainOptions options = published_training(Architecture::kPacm);
  options.optimizer = Optimizer::kSgd;
  options.weight_decay = 0;
  options.clip_norm = 0;
  options.patience = 0;
  options.widen_scales = false;
  return options;
}

ModelWeights initial_weights(Architecture architecture,
                             uint64_t seed,
                             const PrimitiveForm& form,
                             std::span<const std::string> platforms) {
  Rng rng(seed);
  ModelWeights weights;
  weights.architecture = architecture;
  weights.form = form;
  weights.heads.assign(platforms.begin(), platforms.end());
  if (!platforms.empty()) weights.heads.emplace_back(kOtherPlatform);
  double fan_in = 1;  // of the layer, whose weight precedes its bias
  for (const WeightSpec& spec : tensor_specs(weights)) {
    const std::string_view name = spec.name;
    int64_t count = 1;
    for (const int64_t extent : spec.shape) count *= extent;
    WeightTensor tensor{spec.shape, std::vector<float>(static_cast<size_t>(count))};
    if (name == "norm.weight" || name == "norm.running_var") {
      std::fill(tensor.values.begin(), tensor.values.end(), 1.0f);
    } else if (!name.starts_with("norm.") && name != "attention.in_proj_bias" &&
               name != "attention.out_proj.bias") {
      if (spec.shape.size() == 2) fan_in = static_cast<double>(spec.shape[1]);
      const double bound = name == "attention.in_proj_weight"  // Xavier's
                               ? std::sqrt(6.0 / static_cast<double>(spec.shape[0] + spec.shape[1]))
                               : 1 / std::sqrt(fan_in);
      for (float& v : tensor.values) v = static_cast<float>(bound * (2 * rng.uniform() - 1));
    }
    weights.tensors[std::string(name)] = std::move(tensor);
  }
  return weights;
}

size_t add_platform(ModelWeights& weights, const std::string& platform) {
  const size_t found = head_of(weights, platform);
  if (weights.heads.empty() || weights.heads[found] == platform) return found;
  const std::string from = decoder_name(weights.heads, found) + ".";
  weights.heads.insert(weights.heads.end() - 1, platform);
  const std::string to = decoder_name(weights.heads, weights.heads.size() - 2) + ".";
  for (const char* layer : {"0", "2", "4", "6"})
    for (const char* part : {".weight", ".bias"})
      weights.tensors[to + layer + part] = weights.tensors[from + layer + part];
  return weights.heads.size() - 2;
}

Result<Trained> train(ModelWeights start,
                      std::span<const TrainingSample> samples,
                      const TrainOptions& options) {
  return Training(samples, options).run(std::move(start));
}

}  // namespace pruner
