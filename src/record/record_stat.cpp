#include "record/record_stat.h"

#include <algorithm>

#include "record/record_id.h"

namespace pruner {

namespace {

constexpr const char* kNoTime = "no time";  // a time that cannot be, and no error

std::string kind_of(const Record& record) {
  return record.result.ok() ? kNoTime : error_name(record.result.error);
}

/// A name that all records share; "several" otherwise.
void share(std::string& common, const std::string& name, bool first) {
  if (first) common = name;
  if (common != name) common = "several";
}

}  // namespace

const char* error_name(MeasureError error) {
  switch (error) {
    case MeasureError::kNone: return "none";
    case MeasureError::kInstantiation: return "instantiation";
    case MeasureError::kCompileHost: return "compile host";
    case MeasureError::kCompileDevice: return "compile device";
    case MeasureError::kRuntimeDevice: return "runtime device";
    case MeasureError::kWrongAnswer: return "wrong answer";
    case MeasureError::kBuildTimeout: return "build timeout";
    case MeasureError::kRunTimeout: return "run timeout";
    case MeasureError::kUnknown: return "unknown";
  }
  return "unknown";
}

void RecordCount::add(const Record& record, const std::string& trial_id) {
  ++records;
  duplicates += !trials_.insert(trial_id).second;
  versions.insert(record.version);
  if (const int64_t time = record.result.timestamp; time > 0) {
    first_time = first_time == 0 ? time : std::min(first_time, time);
    last_time = std::max(last_time, time);
  }
  if (const std::optional<double> time_s = measured_s(record)) {
    ++valid;
    best_s = std::min(best_s.value_or(*time_s), *time_s);
    times_s_.push_back(*time_s);
  } else {
    ++failed[kind_of(record)];
  }
}

std::optional<double> RecordCount::median_s() const {
  if (times_s_.empty()) return std::nullopt;
  std::vector<double> sorted = times_s_;
  std::ranges::sort(sorted);
  const size_t n = sorted.size();
  return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

Result<RecordStat> count_records(std::span<const RecordPath> files, StatGroup group, int jobs) {
  RecordStat stat;
  std::map<RecordedTask, StatRow> rows;
  const auto by_file = [&](const std::string& path) -> StatRow& {
    if (stat.rows.empty() || stat.rows.back().name != path) stat.rows.push_back({.name = path});
    return stat.rows.back();
  };
  const auto take = [&](StreamedRecord&& streamed) -> Result<Unit> {
    const Record& record = streamed.record;
    StatRow& row = group == StatGroup::kTask ? rows[task_of(record)] : by_file(streamed.path);
    const bool first = row.count.records == 0;
    if (group == StatGroup::kTask) row.name = name_of(record);
    share(row.target, record.target, first);
    share(row.device, record.device, first);
    share(row.workload_key, record.workload_key, first);
    row.count.add(record, streamed.ids.trial);
    stat.total.add(record, streamed.ids.trial);
    return Unit{};
  };
  TRY_ASSIGN(stat.summary, stream_records(files, jobs, take));
  stat.total.best_s.reset();
  for (auto& [task, row] : rows) stat.rows.push_back(std::move(row));
  if (group == StatGroup::kTask) std::ranges::stable_sort(stat.rows, {}, &StatRow::name);
  return stat;
}

}  // namespace pruner
