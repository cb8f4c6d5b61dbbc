// Record files -> the fastest records of each task.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "record/record_id.h"
#include "record/record_stream.h"

namespace pruner {

/// A record that was chosen, and where it stands.
struct BestRecord {
  RecordedTask task;
  std::string name;  // name of the task
  double time_s = 0;
  size_t file = 0;
  int64_t line = 0;
};

struct BestRecords {
  std::vector<BestRecord> records;  // tasks in the order they are met, the fastest first
  int64_t tasks = 0;
  int64_t hopeless = 0;  // tasks without a valid record
  StreamSummary summary;
};

/// The `top_k` fastest programs of each task. A program counts with its fastest trial; where it was
/// measured again at the end of a run ("final"), with the fastest of these, as the search's own
/// times led to it.
Result<BestRecords> find_best(std::span<const RecordPath> files, size_t top_k, int jobs);

/// The lines of the records, in their order. Errors: a file is not what it was.
Result<std::vector<std::string>> lines_of(std::span<const BestRecord> records,
                                          std::span<const RecordPath> files);

}  // namespace pruner
