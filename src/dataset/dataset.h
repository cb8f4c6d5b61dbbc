// A file of features: what models read of measured programs, and how long these took. Columns in
// one memory-mapped safetensors file, checksummed, and refused when another version of the features
// made it.
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
  std::string target;  // as the records print it
};

class Dataset {
 public:
  /// Errors name the file: it is no dataset, it is damaged, or other features are in it.
  static Result<Dataset> open(const std::string& path);

  int64_t size() const;  // programs
  const std::vector<DatasetTask>& tasks() const;
  /// What became of the records that it was made of, as JSON.
  const std::string& about() const;

  /// One number a program.
  std::span<const int32_t> task() const;
  std::span<const double> latency_s() const;  // 1e10 when the trial failed
  std::span<const uint64_t> id() const;       // hash of task and program: the same in every dataset

  /// Of one program: stored buffers x kRowFeatures; kDataflowSteps x kDataflowFeatures; the
  /// sequence of its primitives.
  std::span<const float> rows(int64_t program) const;
  std::span<const float> dataflow(int64_t program) const;
  std::span<const int32_t> primitives(int64_t program) const;

 private:
  struct Columns;
  std::shared_ptr<const Columns> columns_;
};

}  // namespace pruner
