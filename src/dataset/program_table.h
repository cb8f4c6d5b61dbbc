// Turns feature files into one table of measured programs, which splits read, and which train and
// judge models. Failed trials and doubles are left out and counted.
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

/// `LeftOut` counts the programs that are not in the table.
struct LeftOut {
  int64_t failed = 0;      // failed trials
  int64_t bad_time = 0;    // latencies that are no time: 0, negative or no number
  int64_t twice = 0;       // repetitions of a program of a task
  int64_t no_feature = 0;  // programs without a stored buffer, or with a non-finite feature
};

/// Returns an error if there are targets of CPUs and of GPUs, whose features do not compare.
Result<Unit> check_one_kind(const std::vector<std::string>& targets);

class ProgramTable {
 public:
  /// Errors name the file; no program is left; or CPU and GPU targets are mixed.
  static Result<ProgramTable> open(std::span<const std::string> paths);

  /// Adds a program, unless the program is to be left out; returns whether it was added.
  bool add(const DatasetTask& task, uint64_t id, ProgramFeatures features, double latency_s);

  size_t size() const { return samples_.size(); }
  const std::vector<DatasetTask>& tasks() const { return tasks_; }
  std::span<const TrainingSample> samples() const { return samples_; }
  std::span<const uint64_t> id() const { return id_; }
  /// Returns the best latency of the program's task in the table over the program's, in (0, 1].
  float label(size_t program) const;
  const LeftOut& left_out() const { return left_out_; }
  /// Returns every target once.
  std::vector<std::string> targets() const;

  SplitColumns columns() const;
  /// Moves the programs' features out of the table; their latencies and ids stay.
  std::vector<TrainingSample> take(std::span<const size_t> programs);

 private:
  std::vector<DatasetTask> tasks_;
  std::map<std::pair<std::string, std::string>, int32_t> number_;  // task numbers by key and target
  std::vector<TrainingSample> samples_;
  std::vector<int32_t> task_;
  std::vector<uint64_t> id_;
  std::vector<double> best_s_;  // one per task
  std::unordered_set<uint64_t> seen_;
  LeftOut left_out_;
};

}  // namespace pruner
