// A machine that is a function: candidates take a time that their hash decides.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "measure/measure.h"
#include "search/history.h"

namespace pruner {

class FakeMeasurer : public Measurer {
 public:
  /// Seconds of a candidate at its nth measurement; kFailedCost: it fails.
  using Cost = std::function<double(const Candidate& candidate, int nth)>;

  explicit FakeMeasurer(Cost cost = by_hash) : cost_(std::move(cost)) {}

  static double by_hash(const Candidate& candidate, int) {
    return 1e-3 * (1 + static_cast<double>(CandidateHash{}(candidate) % 1000) / 1000);
  }

  Result<std::vector<MeasureResult>> measure(const Task& task,
                                             std::span<const Candidate> batch,
                                             double) override {
    const std::lock_guard turn(turn_);
    std::vector<MeasureResult> results;
    if (gone_after >= 0 && measured >= gone_after) return Error("the device is gone");
    for (const Candidate& candidate : batch) {
      if (stop_after == measured) stop = true;
      if (stop) break;
      const double cost_s = cost_(candidate, ++times_measured_[task.key][candidate]);
      MeasureResult& result = results.emplace_back();
      result.timestamp = 1;
      if (cost_s < kFailedCost) {
        result.costs_s = {cost_s};
      } else {
        result.error = MeasureError::kRuntimeDevice;
        result.error_text = "made to fail";
      }
      ++measured;
    }
    return results;
  }

  MeasureTimes times() const override { return {}; }
  int batches_at_once() const override { return at_once; }

  std::atomic<bool> stop{false};
  int64_t stop_after = -1, gone_after = -1;
  int64_t measured = 0;
  int at_once = 1;

 private:
  std::mutex turn_;
  Cost cost_;
  std::unordered_map<std::string, std::unordered_map<Candidate, int, CandidateHash>>
      times_measured_;
};

}  // namespace pruner
