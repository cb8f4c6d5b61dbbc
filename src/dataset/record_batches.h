// Record files -> their lines, a batch at a time: files are read and unpacked in parallel, and no
// more of them are in memory than make one batch.
#pragma once

#include <string>
#include <vector>

#include "record/record.h"
#include "record/record_paths.h"

namespace pruner {

/// A file as it was read; `error` says why it was not.
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

  /// The next files, in order; none: that was all.
  std::vector<ReadFile> next();

 private:
  std::vector<RecordPath> files_;
  int jobs_;
  size_t next_ = 0;
};

}  // namespace pruner
