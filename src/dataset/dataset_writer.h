// Writes the features of programs, one after the other, to a file of features. The features wait in
// files beside it, so that memory does not grow; the file gets its name when it is whole.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "analysis/features.h"
#include "dataset/dataset.h"
#include "support/output_file.h"

namespace pruner {

/// `DatasetRow` is a program that goes into the file.
struct DatasetRow {
  int64_t program = 0;  // number of its add()
  int32_t task = 0;     // index in the list of finish()
  double latency_s = 0;
  uint64_t id = 0;
};

class DatasetWriter {
 public:
  /// Errors name `path`: nothing can be written there.
  static Result<DatasetWriter> open(const std::string& path);
  DatasetWriter(DatasetWriter&& other) noexcept;
  DatasetWriter& operator=(DatasetWriter&& other) noexcept;
  ~DatasetWriter();

  /// Adds a program and returns its number, counted from 0.
  Result<int64_t> add(const ProgramFeatures& features);
  /// Writes the rows in their order and puts the file in its place; an error leaves an old file as
  /// it was. `about`: JSON, for people.
  Result<Unit> finish(std::span<const DatasetRow> rows,
                      std::span<const DatasetTask> tasks,
                      const std::string& about);

  int64_t row_count(int64_t program) const {
    const auto p = static_cast<size_t>(program);
    return row_offsets_[p + 1] - row_offsets_[p];
  }

 private:
  explicit DatasetWriter(std::string path) : path_(std::move(path)) {}
  Result<Unit> flush();

  std::string path_;
  std::unique_ptr<OutputFile> output_;
  int rows_fd_ = -1, dataflow_fd_ = -1, primitives_fd_ = -1;
  std::string rows_, dataflow_, primitives_;                          // not yet written
  std::vector<int64_t> row_offsets_ = {0}, primitive_offsets_ = {0};  // offsets of added programs
};

}  // namespace pruner
