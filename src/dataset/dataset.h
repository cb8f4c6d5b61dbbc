// A file of features holds the models' inputs for measured programs, and the programs' latencies.
// The columns lie in one memory-mapped safetensors file with a checksum. A file of another version
// of the features is refused.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "analysis/features.h"
#include "support/result.h"

namespace pruner {

struct DatasetTask {
  std::string workload_key;
  std::string target;  // text in the records
};

class Dataset {
 public:
  /// Errors name the file: it is no dataset, it is damaged, or other features are in it.
  static Result<Dataset> open(const std::string& path);

  int64_t size() const;  // programs
  const std::vector<DatasetTask>& tasks() const;
  /// Returns, as JSON, the fates of the records that the file was made from.
  const std::string& about() const;

  /// task(), latency_s() and id() hold one number a program.
  std::span<const int32_t> task() const;
  std::span<const double> latency_s() const;  // 1e10 when the trial failed
  std::span<const uint64_t> id() const;       // hash of task and program: the same in every dataset

  /// Return the data of one program: stored buffers x kRowFeatures; kDataflowSteps x
  /// kDataflowFeatures; the sequence of its primitives.
  std::span<const float> rows(int64_t program) const;
  std::span<const float> dataflow(int64_t program) const;
  std::span<const int32_t> primitives(int64_t program) const;

 private:
  struct Columns;
  std::shared_ptr<const Columns> columns_;
};

}  // namespace pruner
