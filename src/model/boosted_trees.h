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

/// `kTreeFeatures` is the number of features in a row: the statement's features and nine flags of
/// the task, as in the reference.
inline constexpr int kTreeFeatures = kStatementFeatures + kTaskFeatures - 1;

/// `Boosting` says how trees are grown; its defaults are TenSet's.
struct Boosting {
  int rounds = 300;  // trees, at most
  int max_depth = 6;
  float gamma = 0.003f;  // least gain of a split
  float min_child_weight = 2;
  /// The fit stops after so many rounds without a smaller error on the training samples; 0: never.
  int training_patience = 0;
  bool weighs_by_label = false;  // fast programs count more
};

/// `kMetaScheduleBoosting` has MetaSchedule's settings (TVM's
/// meta_schedule/cost_model/xgb_model.py).
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
  /// `validation_share` is the share of each task's samples that is held out. The fit keeps the
  /// first trees, up to the round that ranks the held-out samples best.
  double validation_share = 0;
  int patience = 50;  // rounds without a better loss on the held-out samples before it stops
};

class BoostedTrees;

/// `BoostProgress` is the state of a fit, reported every 10 rounds.
struct BoostProgress {
  int rounds = 0;
  double error = 0;  // root of the mean squared error on the training samples
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
  /// Returns an error that names the package if xgboost is not here.
  static Result<Unit> find_library();
  /// Fits sums over rows to relative throughputs, by squared error. Errors: xgboost is missing.
  static Result<BoostedTrees> fit(std::span<const TrainingSample> samples,
                                  const BoostOptions& options,
                                  const BoostWatch& watch = {});
  /// xgboost's JSON. Errors do not name the file.
  static Result<BoostedTrees> parse(const std::string& json, int threads);
  Result<std::string> print() const;
  Result<int> rounds() const;

  /// trained_on() and set_trained_on() read and write the list of training programs that a model
  /// file holds; nullopt if the file has no list.
  Result<std::optional<TrainedOn>> trained_on() const;
  Result<Unit> set_trained_on(const TrainedOn& seen);

  /// Returns one score a program, higher is faster; minus infinity for a program without rows.
  Result<std::vector<float>> predict(std::span<const ProgramFeatures> programs) const;

 private:
  struct Booster;
  friend class BoostedFit;
  std::shared_ptr<const Booster> booster_;
};

}  // namespace pruner
