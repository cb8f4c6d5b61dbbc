#include "model/boosted_trees.h"

#include <dlfcn.h>

#include <chrono>

#include "support/json.h"

namespace pruner {
namespace {

using Handle = void*;
using Length = uint64_t;

/// What is used of xgboost's C interface, the same since version 1.6; 0 means done.
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
};

Result<XgBoost> load_library() {
  void* library = nullptr;
  for (const char* name : {"libxgboost.so.0", "libxgboost.so"}) {
    if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
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
  if (!missing.empty()) return Error("libxgboost.so has no ", missing, "; xgboost 1.6 is needed");
  return calls;
}

Result<XgBoost> library() {
  static const Result<XgBoost> kLibrary = load_library();
  return kLibrary;
}

/// The error of a call that did not give 0: the first line that says something.
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

/// The rows of the programs, one after the other.
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

  static Result<std::shared_ptr<Booster>> make(const Matrix* training, int threads) {
    TRY_ASSIGN(const XgBoost xgboost, library());
    auto booster = std::make_shared<Booster>(xgboost);
    TRY(done(xgboost,
             xgboost.create(training == nullptr ? nullptr : &training->handle,
                            training == nullptr ? 0 : 1,
                            &booster->handle)));
    TRY(booster->set("nthread", std::to_string(threads)));
    TRY(booster->set("verbosity", "0"));
    return booster;
  }

  Result<Unit> set(const char* name, const std::string& value) const {
    return done(xgboost, xgboost.set_parameter(handle, name, value.c_str()));
  }

  /// The sum of each program's rows.
  Result<std::vector<double>> sums(const Matrix& matrix, size_t programs, bool training) const {
    constexpr int kMargin = 1;  // what the trees give, untransformed
    Length count = 0;
    const float* rows = nullptr;
    TRY(done(xgboost, xgboost.predict(handle, matrix.handle, kMargin, 0, training, &count, &rows)));
    std::vector<double> sums(programs);
    for (size_t r = 0; r < count; ++r) sums[matrix.program_of_row[r]] += double{rows[r]};
    return sums;
  }
};

Result<BoostedTrees> BoostedTrees::fit(std::span<const TrainingSample> samples,
                                       const BoostOptions& options) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  TRY_ASSIGN(const XgBoost xgboost, library());
  const auto features = [](const TrainingSample& s) -> const ProgramFeatures& {
    return s.features;
  };
  TRY_ASSIGN(const auto matrix, matrix_of(xgboost, samples, features));
  if (matrix->program_of_row.empty()) return Error("training needs programs, there are none");
  TRY_ASSIGN(const std::shared_ptr<Booster> booster, Booster::make(matrix.get(), options.threads));
  const std::pair<const char*, std::string> parameters[] = {{"max_depth", "6"},
                                                            {"gamma", "0.003"},
                                                            {"min_child_weight", "2"},
                                                            {"eta", "0.2"},
                                                            {"base_score", "0.5"},
                                                            {"seed", std::to_string(options.seed)},
                                                            {"disable_default_eval_metric", "1"}};
  for (const auto& [name, value] : parameters) TRY(booster->set(name, value));

  const std::vector<float> labels = relative_throughputs(samples);
  std::vector<float> gradient(matrix->program_of_row.size());
  std::vector<float> hessian(gradient.size(), 1);
  for (int round = 0; round < options.rounds; ++round) {
    TRY_ASSIGN(const std::vector<double> sums, booster->sums(*matrix, samples.size(), true));
    for (size_t r = 0; r < gradient.size(); ++r) {
      const size_t program = matrix->program_of_row[r];
      gradient[r] = static_cast<float>(sums[program] - double{labels[program]});
    }
    TRY(done(
        xgboost,
        xgboost.boost_one_round(
            booster->handle, matrix->handle, gradient.data(), hessian.data(), gradient.size())));
    if (std::chrono::duration<double>(Clock::now() - begin).count() > options.time_box_s) break;
  }
  // A copy that does not hold on to the training matrix.
  BoostedTrees trained;
  trained.booster_ = booster;
  TRY_ASSIGN(const std::string json, trained.print());
  return parse(json, options.threads);
}

Result<BoostedTrees> BoostedTrees::parse(const std::string& json, int threads) {
  const Result<Json> model = parse_json(json);
  if (!model.ok() || !model->is_object() || !model->contains("learner"))
    return Error("not a model of boosted trees: expected xgboost's JSON");
  TRY_ASSIGN(const std::shared_ptr<Booster> booster, Booster::make(nullptr, threads));
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
