#include "model/boosted_trees.h"

#include <dlfcn.h>

#include <chrono>
#include <cmath>
#include <filesystem>

#include "model/ranking_loss.h"
#include "support/json.h"

namespace pruner {
namespace {

constexpr const char* kTrainedOn = "trained_on";  // an attribute of the model

using Handle = void*;
using Length = uint64_t;

/// `XgBoost` holds the calls of xgboost's C interface that are used, the same since version 1.6. A
/// call that returns int returns 0 when it is done.
struct XgBoost {
  const char* (*last_error)();
  int (*matrix_create)(const float* rows, Length row_count, Length columns, float missing, Handle*);
  int (*matrix_free)(Handle);
  int (*create)(const Handle* matrices, Length count, Handle*);
  int (*free)(Handle);
  int (*set_parameter)(Handle, const char* name, const char* value);
  int (*boost_one_round)(Handle, Handle matrix, float* gradient, float* hessian, Length);
  int (*predict)(
      Handle, Handle matrix, int mask, unsigned trees, int training, Length*, const float**);
  int (*feature_count)(Handle, Length*);
  int (*save)(Handle, const char* config, Length*, const char**);
  int (*load)(Handle, const void* bytes, Length);
  int (*slice)(Handle, int begin, int end, int step, Handle* part);
  int (*rounds)(Handle, int* count);
  int (*get_attribute)(Handle, const char* name, const char** value, int* found);
  int (*set_attribute)(Handle, const char* name, const char* value);
};

/// Opens the system's library or, if the system has none, the library in lib/ beside the program
/// (the preset portable's, which bench/gpu_bundle.sh takes along).
void* open_library(const char* name) {
  if (void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  std::error_code unknown;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", unknown);
  return dlopen((program.parent_path() / "lib" / name).c_str(), RTLD_NOW | RTLD_LOCAL);
}

void* open_xgboost() {
  if (void* const library = dlopen("libxgboost.so", RTLD_NOW | RTLD_LOCAL)) return library;
  // The loader resolves a library's dependencies by name among the libraries loaded by then.
  for (const char* name : {"libgomp.so.1", "libdmlc.so.0"}) open_library(name);
  return open_library("libxgboost.so.0");
}

Result<XgBoost> load_library() {
  void* const library = open_xgboost();
  if (library == nullptr)
    return Error("no libxgboost.so: install libxgboost-dev or set LD_LIBRARY_PATH");
  XgBoost calls;
  std::string missing;
  const auto find = [&](auto& function, const char* name) {
    void* symbol = dlsym(library, name);
    if (symbol == nullptr) missing = name;
    function = reinterpret_cast<std::decay_t<decltype(function)>>(symbol);
  };
  find(calls.last_error, "XGBGetLastError");
  find(calls.matrix_create, "XGDMatrixCreateFromMat");
  find(calls.matrix_free, "XGDMatrixFree");
  find(calls.create, "XGBoosterCreate");
  find(calls.free, "XGBoosterFree");
  find(calls.set_parameter, "XGBoosterSetParam");
  find(calls.boost_one_round, "XGBoosterBoostOneIter");
  find(calls.predict, "XGBoosterPredict");
  find(calls.feature_count, "XGBoosterGetNumFeature");
  find(calls.save, "XGBoosterSaveModelToBuffer");
  find(calls.load, "XGBoosterLoadModelFromBuffer");
  find(calls.slice, "XGBoosterSlice");
  find(calls.rounds, "XGBoosterBoostedRounds");
  find(calls.get_attribute, "XGBoosterGetAttr");
  find(calls.set_attribute, "XGBoosterSetAttr");
  if (!missing.empty()) return Error("libxgboost.so has no ", missing, "; xgboost 1.6 is needed");
  return calls;
}

Result<XgBoost> library() {
  static const Result<XgBoost> kLibrary = load_library();
  return kLibrary;
}

/// Returns the error of a call that did not give 0: the first line that says something.
Result<Unit> done(const XgBoost& xgboost, int status) {
  if (status == 0) return Unit{};
  std::string reason = xgboost.last_error();
  if (reason.starts_with("["))
    reason = reason.substr(std::min(reason.find("] "), reason.size() - 2) + 2);
  return Error("xgboost: ", reason.substr(0, reason.find('\n')));
}

struct Matrix {
  ~Matrix() {
    if (handle != nullptr) xgboost.matrix_free(handle);
  }
  XgBoost xgboost;
  Handle handle = nullptr;
  std::vector<size_t> program_of_row;
};

/// Returns the rows of the programs, one after the other.
template <typename Programs, typename FeaturesOf>
Result<std::unique_ptr<Matrix>> matrix_of(const XgBoost& xgboost,
                                          const Programs& programs,
                                          const FeaturesOf& features_of) {
  auto matrix = std::make_unique<Matrix>(xgboost);
  std::vector<float> rows;
  for (size_t b = 0; b < programs.size(); ++b) {
    const ProgramFeatures& program = features_of(programs[b]);
    for (size_t r = 0; r < program.row_count(); ++r) {
      const float* row = program.rows.data() + r * kRowFeatures;
      rows.insert(rows.end(), row, row + kTreeFeatures);
      matrix->program_of_row.push_back(b);
    }
  }
  TRY(done(xgboost,
           xgboost.matrix_create(rows.data(),
                                 matrix->program_of_row.size(),
                                 kTreeFeatures,
                                 std::numeric_limits<float>::quiet_NaN(),
                                 &matrix->handle)));
  return matrix;
}

}  // namespace

struct BoostedTrees::Booster {
  ~Booster() {
    if (handle != nullptr) xgboost.free(handle);
  }
  XgBoost xgboost;
  Handle handle = nullptr;

  /// `matrices` are the matrices whose predictions are kept from round to round.
  static Result<std::shared_ptr<Booster>> make(std::span<const Handle> matrices, int threads) {
    TRY_ASSIGN(const XgBoost xgboost, library());
    auto booster = std::make_shared<Booster>(xgboost);
    TRY(done(xgboost, xgboost.create(matrices.data(), matrices.size(), &booster->handle)));
    TRY(booster->set("nthread", std::to_string(threads)));
    TRY(booster->set("verbosity", "0"));
    return booster;
  }

  Result<Unit> set(const char* name, const std::string& value) const {
    return done(xgboost, xgboost.set_parameter(handle, name, value.c_str()));
  }

  /// Returns the sum of the predictions of each program's rows.
  Result<std::vector<double>> sums(const Matrix& matrix, size_t programs, bool training) const {
    constexpr int kMargin = 1;  // asks for the untransformed output of the trees
    Length count = 0;
    const float* rows = nullptr;
    TRY(done(xgboost, xgboost.predict(handle, matrix.handle, kMargin, 0, training, &count, &rows)));
    std::vector<double> sums(programs);
    for (size_t r = 0; r < count; ++r) sums[matrix.program_of_row[r]] += double{rows[r]};
    return sums;
  }
};

/// One fit: what it trains on, what it holds out, and the booster.
class BoostedFit {
 public:
  BoostedFit(std::span<const TrainingSample> samples,
             const BoostOptions& options,
             const BoostWatch& watch)
      : samples_(samples), options_(options), watch_(watch) {}

  Result<BoostedTrees> run() {
    TRY(begin());
    const int most = options_.boosting.rounds;
    while (rounds_ < most && !is_stale()) {
      TRY(boost());
      const bool stopped = watch_.stop != nullptr && *watch_.stop;
      const bool late = seconds() > options_.time_box_s;
      if (rounds_ % kLookEvery == 0 || rounds_ == most || is_stale() || stopped || late)
        TRY(look());
      if (stopped || late || rounds_ - best_rounds_ >= options_.patience) break;
    }
    return kept();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int kLookEvery = 10;
  // xgboost prints an error with six decimals, and MetaSchedule reads what is printed.
  static constexpr double kErrorsAUnit = 1e6;
  static constexpr size_t kManyRows = 20000;  // rows above which exact splits take too long

  Result<Unit> begin() {
    TRY_ASSIGN(const XgBoost xgboost, library());
    const std::vector<float> labels = relative_throughputs(samples_);
    const HeldOut held =
        hold_out(samples_, options_.validation_share, 0, [](const TrainingSample& sample) {
          return !sample.features.rows.empty();
        });
    TRY(fill(xgboost, held.train, labels, training_));
    TRY(fill(xgboost, held.validation, labels, validation_));
    validation_tasks_ = held.validation_tasks;
    if (training_.matrix->program_of_row.empty())
      return Error("training needs programs, there are none");
    const Handle matrices[] = {training_.matrix->handle, validation_.matrix->handle};
    const bool validates = !validation_.programs.empty();
    TRY_ASSIGN(booster_,
               BoostedTrees::Booster::make(std::span(matrices).first(validates ? 2 : 1),
                                           options_.threads));
    if (watch_.resume != nullptr) {
      TRY_ASSIGN(const std::string json, watch_.resume->print());
      TRY(done(xgboost, xgboost.load(booster_->handle, json.data(), json.size())));
      TRY_ASSIGN(rounds_, watch_.resume->rounds());
      best_rounds_ = rounds_;
    }
    const bool many = training_.matrix->program_of_row.size() > kManyRows;
    const std::pair<const char*, std::string> parameters[] = {
        {"max_depth", std::to_string(options_.boosting.max_depth)},
        {"gamma", std::to_string(options_.boosting.gamma)},
        {"min_child_weight", std::to_string(options_.boosting.min_child_weight)},
        {"eta", "0.2"},
        {"base_score", "0.5"},
        {"tree_method", many ? "hist" : "exact"},
        {"seed", std::to_string(options_.seed)},
        {"disable_default_eval_metric", "1"}};
    for (const auto& [name, value] : parameters) TRY(booster_->set(name, value));
    return Unit{};
  }

  struct Part {
    std::vector<const ProgramFeatures*> programs;
    std::vector<float> labels;
    std::vector<int32_t> tasks;
    std::unique_ptr<Matrix> matrix;
  };

  Result<Unit> fill(const XgBoost& xgboost,
                    std::span<const size_t> ids,
                    const std::vector<float>& labels,
                    Part& part) const {
    for (const size_t id : ids) {
      part.programs.push_back(&samples_[id].features);
      part.labels.push_back(labels[id]);
      part.tasks.push_back(samples_[id].task);
    }
    const auto itself = [](const ProgramFeatures* p) -> const ProgramFeatures& { return *p; };
    TRY_ASSIGN(part.matrix, matrix_of(xgboost, part.programs, itself));
    return Unit{};
  }

  /// Returns whether the training error has not fallen for `training_patience` rounds.
  bool is_stale() const {
    const int patience = options_.boosting.training_patience;
    return patience > 0 && rounds_ - least_rounds_ > patience;
  }

  Result<Unit> boost() {
    const XgBoost& xgboost = booster_->xgboost;
    TRY_ASSIGN(const std::vector<double> sums,
               booster_->sums(*training_.matrix, training_.programs.size(), true));
    std::vector<float> gradient(training_.matrix->program_of_row.size());
    std::vector<float> hessian(gradient.size(), 1);
    square_ = 0;
    for (size_t r = 0; r < gradient.size(); ++r) {
      const size_t program = training_.matrix->program_of_row[r];
      gradient[r] = static_cast<float>(sums[program] - double{training_.labels[program]});
      square_ += double{gradient[r]} * gradient[r] / static_cast<double>(gradient.size());
      if (!options_.boosting.weighs_by_label) continue;
      gradient[r] *= training_.labels[program];
      hessian[r] = training_.labels[program];
    }
    const double error = std::round(kErrorsAUnit * std::sqrt(square_));
    if (error < least_error_) {
      least_error_ = error;
      least_rounds_ = rounds_;
    }
    TRY(done(xgboost,
             xgboost.boost_one_round(booster_->handle,
                                     training_.matrix->handle,
                                     gradient.data(),
                                     hessian.data(),
                                     gradient.size())));
    ++rounds_;
    return Unit{};
  }

  /// Judges the trees so far.
  Result<Unit> look() {
    BoostedTrees trees;
    trees.booster_ = booster_;
    BoostProgress now{rounds_, std::sqrt(square_), {}, {}, seconds(), trees};
    if (validation_.programs.empty()) {
      best_rounds_ = rounds_;
    } else {
      TRY_ASSIGN(const std::vector<double> sums,
                 booster_->sums(*validation_.matrix, validation_.programs.size(), false));
      const std::vector<float> scores(sums.begin(), sums.end());
      now.validation_loss =
          lambda_rank(scores, validation_.labels, validation_.tasks).loss / validation_tasks_;
      now.validation_accuracy = pairwise_accuracy(scores, validation_.labels, validation_.tasks);
      if (*now.validation_loss < least_loss_) {
        least_loss_ = *now.validation_loss;
        best_rounds_ = rounds_;
      }
    }
    return watch_.on_progress ? watch_.on_progress(now) : Unit{};
  }

  /// The best trees, as a copy that does not hold on to the training matrix.
  Result<BoostedTrees> kept() const {
    const XgBoost& xgboost = booster_->xgboost;
    auto best = std::make_shared<BoostedTrees::Booster>(xgboost);
    TRY(done(xgboost, xgboost.slice(booster_->handle, 0, best_rounds_, 1, &best->handle)));
    BoostedTrees trees;
    trees.booster_ = best;
    TRY_ASSIGN(const std::string json, trees.print());
    return BoostedTrees::parse(json, options_.threads);
  }

  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

  std::span<const TrainingSample> samples_;
  const BoostOptions& options_;
  const BoostWatch& watch_;
  Part training_, validation_;
  int validation_tasks_ = 0;
  std::shared_ptr<BoostedTrees::Booster> booster_;
  int rounds_ = 0, best_rounds_ = 0;
  double square_ = 0;                                             // mean squared error
  double least_error_ = std::numeric_limits<double>::infinity();  // in 1 / kErrorsAUnit
  int least_rounds_ = 0;                                          // trees that had it
  double least_loss_ = std::numeric_limits<double>::infinity();
  Clock::time_point begin_ = Clock::now();
};

Result<Unit> BoostedTrees::find_library() {
  const Result<XgBoost> found = library();
  return found.ok() ? Result<Unit>(Unit{}) : found.error();
}

Result<BoostedTrees> BoostedTrees::fit(std::span<const TrainingSample> samples,
                                       const BoostOptions& options,
                                       const BoostWatch& watch) {
  return BoostedFit(samples, options, watch).run();
}

Result<BoostedTrees> BoostedTrees::parse(const std::string& json, int threads) {
  const Result<Json> model = parse_json(json);
  if (!model.ok() || !model->is_object() || !model->contains("learner"))
    return Error("not a model of boosted trees: expected xgboost's JSON");
  TRY_ASSIGN(const std::shared_ptr<Booster> booster, Booster::make({}, threads));
  const XgBoost& xgboost = booster->xgboost;
  TRY(done(xgboost, xgboost.load(booster->handle, json.data(), json.size())));
  Length columns = 0;
  TRY(done(xgboost, xgboost.feature_count(booster->handle, &columns)));
  if (columns != kTreeFeatures)
    return Error("boosted trees over ", columns, " features, expected ", kTreeFeatures);
  BoostedTrees trees;
  trees.booster_ = booster;
  return trees;
}

Result<std::optional<TrainedOn>> BoostedTrees::trained_on() const {
  const char* text = nullptr;
  int found = 0;
  const XgBoost& xgboost = booster_->xgboost;
  TRY(done(xgboost, xgboost.get_attribute(booster_->handle, kTrainedOn, &text, &found)));
  if (found == 0) return std::optional<TrainedOn>();
  TRY_ASSIGN(TrainedOn seen, parse_trained_on(text));
  return std::optional(std::move(seen));
}

Result<Unit> BoostedTrees::set_trained_on(const TrainedOn& seen) {
  const XgBoost& xgboost = booster_->xgboost;
  return done(xgboost,
              xgboost.set_attribute(booster_->handle, kTrainedOn, print_trained_on(seen).c_str()));
}

Result<int> BoostedTrees::rounds() const {
  int count = 0;
  const XgBoost& xgboost = booster_->xgboost;
  TRY(done(xgboost, xgboost.rounds(booster_->handle, &count)));
  return count;
}

Result<std::string> BoostedTrees::print() const {
  Length count = 0;
  const char* bytes = nullptr;
  const XgBoost& xgboost = booster_->xgboost;
  TRY(done(xgboost, xgboost.save(booster_->handle, "{\"format\": \"json\"}", &count, &bytes)));
  return std::string(bytes, count);
}

Result<std::vector<float>> BoostedTrees::predict(std::span<const ProgramFeatures> programs) const {
  std::vector<float> scores(programs.size(), -std::numeric_limits<float>::infinity());
  const auto features = [](const ProgramFeatures& p) -> const ProgramFeatures& { return p; };
  TRY_ASSIGN(const auto matrix, matrix_of(booster_->xgboost, programs, features));
  if (matrix->program_of_row.empty()) return scores;
  TRY_ASSIGN(const std::vector<double> sums, booster_->sums(*matrix, programs.size(), false));
  for (const size_t program : matrix->program_of_row)
    scores[program] = static_cast<float>(sums[program]);
  return scores;
}

}  // namespace pruner
