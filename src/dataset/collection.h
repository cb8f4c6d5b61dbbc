// Measures programs of tasks that no model chose, and writes their records to a file. Cost models
// learn from the file, and their choices are judged by it. An existing file is continued.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "tune/tune.h"

namespace pruner {

/// `kCollectOrigin` is the Record::origin of collected records.
inline constexpr const char* kCollectOrigin = "collect";

struct CollectOptions {
  std::string file;
  int64_t programs_per_task = 1000;  // programs of earlier runs included
  double uniform_share = 0.5;        // share drawn uniformly; the rest evolves from drawn programs
  std::vector<std::string> forms;    // forms that are drawn from; empty: all
  int64_t measured_at_once = 2;
  uint64_t seed = 0;
};

/// `CollectTools` holds the tools of a collection; all of them outlive the collection.
struct CollectTools {
  Measurer& measurer;
  const std::atomic<bool>& stop;
  std::function<void(const Tuner& tuner, const RoundSummary& summary)> on_round;
};

class Collection {
 public:
  /// Opens the file and takes up the collected records of these tasks on this device; other records
  /// are left alone. Errors: the file cannot be written, or a line is damaged.
  static Result<std::unique_ptr<Collection>> open(std::span<const WeightedTask> tasks,
                                                  const CollectOptions& options,
                                                  const CollectTools& tools);

  /// Measures until every task has its number of programs, or has no more programs.
  Result<TuneEnd> run() { return tuner_->run(); }
  const Tuner& tuner() const { return *tuner_; }

 private:
  explicit Collection(RecordWriter writer) : writer_(std::move(writer)) {}

  RecordWriter writer_;
  std::unique_ptr<CostModel> chance_;
  std::optional<Tuner> tuner_;
};

}  // namespace pruner
