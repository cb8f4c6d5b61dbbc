// Record files of any version -> one file of v0.6 lines, with our own key `p` or strictly as TVM
// reads them.
#pragma once

#include <map>
#include <span>
#include <string>

#include "record/record_stream.h"

namespace pruner {

struct ConvertOptions {
  bool strict = false;  // without `p`: a record of ours without steps has no such form
};

/// Records that have no such form: how many, and where the first is.
struct NoForm {
  int64_t records = 0;
  std::string first;  // "FILE:LINE"
};

struct ConvertSummary {
  int64_t written = 0;
  int64_t assumed_hardware = 0;             // records that name none: the usual of their target
  std::map<std::string, int64_t> versions;  // records written, by the version that was read
  std::map<std::string, NoForm> left_out;   // records left out, by reason
  StreamSummary summary;
};

/// The record as v0.6 has it, or why it cannot be.
Result<Record> as_v06(Record record, const ConvertOptions& options);

/// Writes `path` (packed when it ends in ".gz") whole or not at all. Errors: nothing is left to be
/// written; it cannot be written.
Result<ConvertSummary> convert_records(std::span<const RecordPath> files,
                                       const ConvertOptions& options,
                                       const std::string& path,
                                       int jobs);

}  // namespace pruner
