// What one tuning run found, and when.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pruner {

/// The estimated total latency of the best schedules so far.
struct CurvePoint {
  int64_t trials = 0;
  double seconds = 0;  // the run's own, when the round of this trial had ended
  double latency_s = 0;
  friend bool operator==(const CurvePoint&, const CurvePoint&) = default;
};

/// A run of one mode with one seed.
struct TuningCurve {
  std::string mode;
  uint64_t seed = 0;
  int64_t trials = 0;
  double search_s = 0;  // all of the run's own time
  bool complete = false;
  std::vector<CurvePoint> points;           // each of another latency than the one before
  std::optional<double> end_to_end_s = {};  // the network's module with what was found, measured

  /// nullopt: not every task has a valid trial.
  std::optional<double> final_s() const {
    if (points.empty()) return std::nullopt;
    return points.back().latency_s;
  }
};

}  // namespace pruner
