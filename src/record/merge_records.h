// Record files -> one file of their records, without copies. Lines stay as they are.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "record/record_stream.h"

namespace pruner {

enum class RecordOrder : uint8_t {
  kTime,   // when they were measured
  kTask,   // workload key, target and device; within a task time taken, failed ones last
  kGiven,  // order of the files and their lines
};
/// "time", "task", "given"
std::optional<RecordOrder> parse_record_order(std::string_view name);

struct MergeSummary {
  int64_t written = 0;
  int64_t duplicates = 0;  // copies of a trial
  StreamSummary summary;
};

/// Writes `path` (packed when it ends in ".gz") whole or not at all. What memory does not hold is
/// sorted beside it. Errors: no record is there; it cannot be written.
Result<MergeSummary> merge_records(std::span<const RecordPath> files,
                                   RecordOrder order,
                                   const std::string& path,
                                   int jobs);

}  // namespace pruner
