// Feature files -> one table of measured programs: what splits look at, what models train on and
// what they are judged by. Failed trials and doubles are left out and counted.
#pragma once

#include <map>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "dataset/dataset.h"
#include "dataset/split.h"
#include "model/training_set.h"

namespace pruner {

/// Of programs that are not in the table.
struct LeftOut {
  int64_t failed = 0;      // trials that failed
  int64_t bad_time = 0;    // a latency that is no time: 0, negative or no number
  int64_t twice = 0;       // the same program of the same task again
  int64_t no_feature = 0;  // without a stored buffer, or with a feature that is not finite
};

/// Targets of CPUs and of GPUs, whose features do not compare, are an error.
Result<Unit> check_one_kind(const std::vector<std::string>& targets);

class ProgramTable {
 public:
  /// Errors name the file; no program is left; or CPU and GPU targets are mixed.
  static Result<ProgramTable> open(std::span<const std::string> paths);

  /// Adds a program, unless it is one to leave out; says whether it did.
  bool add(const DatasetTask& task, uint64_t id, ProgramFeatures features, double latency_s);

  size_t size() const { return samples_.size(); }
  const std::vector<DatasetTask>& tasks() const { return tasks_; }
  std::span<const TrainingSample> samples() const { return samples_; }
  std::span<const uint64_t> id() const { return id_; }
  /// The best latency of the sample's task in the table over its own, in (0, 1].
  float label(size_t program) const;
  const LeftOut& left_out() const { return left_out_; }
  /// Every target there is, each once.
  std::vector<std::string> targets() const;

  SplitColumns columns() const;
  /// Moves these programs' features out of the table, whose latencies and ids stay.
  std::vector<TrainingSample> take(std::span<const size_t> programs);

 private:
  std::vector<DatasetTask> tasks_;
  std::map<std::pair<std::string, std::string>, int32_t> number_;  // of a task: key and target
  std::vector<TrainingSample> samples_;
  std::vector<int32_t> task_;
  std::vector<uint64_t> id_;
  std::vector<double> best_s_;  // of each task
  std::unordered_set<uint64_t> seen_;
  LeftOut left_out_;
};

}  // namespace pruner
