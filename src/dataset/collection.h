// Tasks -> a file of records of programs that no model chose: what cost models learn from, and what
// tells how well they choose. The same file again goes on where it ended.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "tune/tune.h"

namespace pruner {

/// Record::origin of what is collected.
inline constexpr const char* kCollectOrigin = "collect";

struct CollectOptions {
  std::string file;
  int64_t programs_per_task = 1000;  // earlier runs' included
  double uniform_share = 0.5;        // drawn uniformly; the rest are evolved from drawn ones
  std::vector<std::string> forms;    // that are drawn from; empty: all
  int64_t measured_at_once = 2;
  uint64_t seed = 0;
};

/// What a collection works with; all of it outlives the collection.
struct CollectTools {
  Measurer& measurer;
  const std::atomic<bool>& stop;
  std::function<void(const Tuner& tuner, const RoundSummary& summary)> on_round;
};

class Collection {
 public:
  /// Opens the file and takes up what was collected of these tasks on this device; its other
  /// records are left alone. Errors: it cannot be written, or a line is damaged.
  static Result<std::unique_ptr<Collection>> open(std::span<const WeightedTask> tasks,
                                                  const CollectOptions& options,
                                                  const CollectTools& tools);

  /// Measures until every task has its programs, or has no more.
  Result<TuneEnd> run() { return tuner_->run(); }
  const Tuner& tuner() const { return *tuner_; }

 private:
  explicit Collection(RecordWriter writer) : writer_(std::move(writer)) {}

  RecordWriter writer_;
  std::unique_ptr<CostModel> chance_;
  std::optional<Tuner> tuner_;
};

}  // namespace pruner
