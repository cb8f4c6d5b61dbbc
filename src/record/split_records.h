// Record files -> a folder of files: one for each task or target, or one to train and one to test.
// Lines stay as they are; each comes into one file.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "record/record_stream.h"

namespace pruner {

enum class SplitBy : uint8_t {
  kTask,    // a task on a device: NAME-HASH.json
  kTarget,  // a target and device: NAME-HASH.json
  kShare,   // train.json and test.json
};
/// "task", "target", "share"
std::optional<SplitBy> parse_split_by(std::string_view name);

struct RecordSplitOptions {
  SplitBy by = SplitBy::kTask;
  double train_share = 0.9;  // share of the programs; all trials of a program come into one part
  uint64_t seed = 0;
};

struct SplitSummary {
  std::map<std::string, int64_t> files;  // name -> records
  StreamSummary summary;
};

/// Makes `folder`, whole or not at all. Errors: it is there already; no record is in the files.
Result<SplitSummary> split_records(std::span<const RecordPath> files,
                                   const RecordSplitOptions& options,
                                   const std::string& folder,
                                   int jobs);

}  // namespace pruner
