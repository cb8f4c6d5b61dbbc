// Records, one by one -> what there is of each task, or in each file: how many, how many failed and
// why, times, copies, versions, when.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "record/record_stream.h"

namespace pruner {

/// RecordCount counts the properties of some records.
class RecordCount {
 public:
  void add(const Record& record, const std::string& trial_id);

  int64_t records = 0, valid = 0;
  int64_t duplicates = 0;                 // copies of a trial that was counted
  std::map<std::string, int64_t> failed;  // keyed by the kind of error
  std::set<std::string> versions;         // versions of the format
  int64_t first_time = 0, last_time = 0;  // Unix seconds; 0: no record says when
  std::optional<double> best_s;

  int64_t failures() const { return records - valid; }
  std::optional<double> median_s() const;

 private:
  std::vector<double> times_s_;
  std::unordered_set<std::string> trials_;
};

enum class StatGroup : uint8_t { kTask, kFile };

struct StatRow {
  std::string name = {};  // name of the task, or path of the file
  // Value that all of the row's records have, or "several".
  std::string target = {}, device = {}, workload_key = {};
  RecordCount count = {};
};

struct RecordStat {
  std::vector<StatRow> rows;  // tasks by name, files in their order
  RecordCount total;          // without a time: the tasks differ
  StreamSummary summary;
};

Result<RecordStat> count_records(std::span<const RecordPath> files, StatGroup group, int jobs);

/// "build timeout"; of a valid number of `r`.
const char* error_name(MeasureError error);

}  // namespace pruner
