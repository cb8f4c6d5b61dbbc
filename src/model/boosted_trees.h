// Ansor's cost model: an ensemble of boosted trees scores each statement row, and a program's score
// is the sum over its rows (Ansor, section 5.2; TenSet's settings). The door to xgboost, whose
// library is loaded when the first ensemble is made, with the OpenMP that it brings.
#pragma once

#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/training_set.h"

namespace pruner {

/// Of a row: the statement and nine flags of the task, as the reference has it.
inline constexpr int kTreeFeatures = kStatementFeatures + kTaskFeatures - 1;

/// How trees are grown; the defaults are TenSet's.
struct Boosting {
  int rounds = 300;  // trees, at most
  int max_depth = 6;
  float gamma = 0.003f;  // least gain of a split
  float min_child_weight = 2;
  /// Rounds without a smaller error of what is trained on before it stops; 0: they don't count.
  int training_patience = 0;
  bool weighs_by_label = false;  // fast programs count more
};

/// MetaSchedule's (TVM's meta_schedule/cost_model/xgb_model.py).
inline constexpr Boosting kMetaScheduleBoosting = {.rounds = 10000,
                                                   .max_depth = 10,
                                                   .gamma = 0.001f,
                                                   .min_child_weight = 0,
                                                   .training_patience = 50,
                                                   .weighs_by_label = true};

struct BoostOptions {
  Boosting boosting = {};
  int threads = 1;
  uint64_t seed = 43;
  double time_box_s = std::numeric_limits<double>::infinity();
  /// Of each task's samples, held out; the first trees that rank them best are kept.
  double validation_share = 0;
  int patience = 50;  // rounds without a better loss of what is held out before it stops
};

class BoostedTrees;

/// Where a fit stands, every 10 rounds.
struct BoostProgress {
  int rounds = 0;
  double error = 0;  // root of the mean squared error of what is trained on
  std::optional<double> validation_loss, validation_accuracy;
  double seconds = 0;
  const BoostedTrees& trees;
};

struct BoostWatch {
  std::function<Result<Unit>(const BoostProgress&)> on_progress;
  const std::atomic<bool>* stop = nullptr;
  const BoostedTrees* resume = nullptr;  // trees of the same samples and options to go on from
};

class BoostedTrees {
 public:
  /// Whether xgboost is here; the error names the package.
  static Result<Unit> find_library();
  /// Fits sums over rows to relative throughputs, by squared error. Errors: xgboost is missing.
  static Result<BoostedTrees> fit(std::span<const TrainingSample> samples,
                                  const BoostOptions& options,
                                  const BoostWatch& watch = {});
  /// xgboost's JSON. Errors do not name the file.
  static Result<BoostedTrees> parse(const std::string& json, int threads);
  Result<std::string> print() const;
  Result<int> rounds() const;

  /// What they were trained on, from and to the file; none where it does not say.
  Result<std::optional<TrainedOn>> trained_on() const;
  Result<Unit> set_trained_on(const TrainedOn& seen);

  /// One score a program, higher is faster; minus infinity for a program without rows.
  Result<std::vector<float>> predict(std::span<const ProgramFeatures> programs) const;

 private:
  struct Booster;
  friend class BoostedFit;
  std::shared_ptr<const Booster> booster_;
};

}  // namespace pruner
