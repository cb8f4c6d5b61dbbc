// Ansor's cost model: an ensemble of boosted trees scores each statement row, and a program's score
// is the sum over its rows (Ansor, section 5.2; TenSet's settings). The door to xgboost, whose
// library is loaded when the first ensemble is made, with the OpenMP that it brings.
#pragma once

#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/training_set.h"

namespace pruner {

/// Of a row: the statement and nine flags of the task, as the reference has it.
inline constexpr int kTreeFeatures = kStatementFeatures + kTaskFeatures - 1;

struct BoostOptions {
  int rounds = 300;  // trees
  int threads = 1;
  uint64_t seed = 43;
  double time_box_s = std::numeric_limits<double>::infinity();
};

class BoostedTrees {
 public:
  /// Fits sums over rows to relative throughputs, by squared error. Errors: xgboost is missing.
  static Result<BoostedTrees> fit(std::span<const TrainingSample> samples,
                                  const BoostOptions& options);
  /// xgboost's JSON. Errors do not name the file.
  static Result<BoostedTrees> parse(const std::string& json, int threads);
  Result<std::string> print() const;

  /// One score a program, higher is faster; minus infinity for a program without rows.
  Result<std::vector<float>> predict(std::span<const ProgramFeatures> programs) const;

 private:
  struct Booster;
  std::shared_ptr<const Booster> booster_;
};

}  // namespace pruner
