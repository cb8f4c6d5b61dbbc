// The latencies that one tuning run found over its time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pruner {

/// Holds the estimated total latency of the best schedules so far.
struct CurvePoint {
  int64_t trials = 0;
  double seconds = 0;  // the run's own time at the end of the trial's round
  double latency_s = 0;
  friend bool operator==(const CurvePoint&, const CurvePoint&) = default;
};

/// A run of one mode with one seed.
struct TuningCurve {
  std::string mode;
  uint64_t seed = 0;
  int64_t trials = 0;
  double search_s = 0;  // the run's own time in all
  bool complete = false;
  std::vector<CurvePoint> points;           // points at which the latency changed
  std::optional<double> end_to_end_s = {};  // measured time of the network's module

  /// nullopt: not every task has a valid trial.
  std::optional<double> final_s() const {
    if (points.empty()) return std::nullopt;
    return points.back().latency_s;
  }
};

}  // namespace pruner
