// Reads the lines of record files, a batch at a time. Files are read and unpacked in parallel, and
// only one batch of files is in memory.
#pragma once

#include <string>
#include <vector>

#include "record/record.h"
#include "record/record_paths.h"

namespace pruner {

/// `ReadFile` is a file as it was read; `error` says why it was not read.
struct ReadFile {
  std::string path;
  std::string content;
  std::string error;
  bool damaged = false;  // packed, and ends early or has an error in it
  bool other = false;    // found in a folder, and holds no records
  std::vector<RecordLine> lines;
};

class RecordBatches {
 public:
  RecordBatches(std::vector<RecordPath> files, int jobs) : files_(std::move(files)), jobs_(jobs) {}

  /// Returns the next files, in order; empty after the last file.
  std::vector<ReadFile> next();

 private:
  std::vector<RecordPath> files_;
  int jobs_;
  size_t next_ = 0;
};

}  // namespace pruner
