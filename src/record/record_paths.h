// Finds the files that a user names as record files: files, patterns, and folders with all below; a
// work dir stands for its records. Says what may be written beside them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "support/result.h"

namespace pruner {

/// The records of a tuning run in its folder, beside run.json.
inline constexpr const char* kWorkDirRecords = "records.json";

struct RecordPath {
  std::string path;
  bool named = true;  // not: found in a folder, where other files may stand as well
};

/// Sorted within each folder and pattern. An error names what matches nothing.
Result<std::vector<RecordPath>> find_record_files(const std::vector<std::string>& patterns);

/// An error when `path` is one of the files.
Result<Unit> check_no_input(const std::string& path, std::span<const RecordPath> files);

}  // namespace pruner
