// Records: one JSON line a trial. A line has Ansor v0.6's keys `i` (task and transform steps; empty
// steps where a candidate has no step form), `r` (costs, error, all_cost, timestamp), `v`, and one
// key of ours, `p`: sketch by name and structural hash, decisions, device, threads, error text.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "measure/measure.h"
#include "space/space.h"

namespace pruner {

/// One line, as read: what it says of itself; the candidate is found by resolve().
struct Record {
  std::string workload_key;
  std::string target;        // target text
  std::string task_name;
  std::string sketch_name, sketch_hash;
  std::vector<std::pair<std::string, int32_t>> decisions;  // by name
  std::string device;        // device_fingerprint
  int threads = 0;
  MeasureResult result;
  std::string origin;        // "search", "final" (re-measured best), "foreign" (no `p`)
};

Record make_record(const Task& task, const Space& space, const Candidate& candidate, const MeasureResult& result);
std::string print_line(const Record& record);
Result<Record> parse_line(std::string_view line);

/// The record's candidate in this space; nullopt when its sketch is not known here any more or a
/// decision is out of range.
std::optional<Candidate> resolve(const Space& space, const Record& record);

/// What reading a record file gave. A torn last line and lines that are no record are counted and
/// the first is named, never a reason to stop.
struct RecordFile {
  std::vector<Record> records;
  int64_t skipped = 0;
  std::string first_skipped;   // "records.json:17: not JSON at byte 3"
};
Result<RecordFile> read_records(const std::string& path);

/// Appends lines, each flushed before the call returns. Opening creates the file, and cuts a torn
/// last line off into `path`.torn.
class RecordWriter {
 public:
  static Result<RecordWriter> open(const std::string& path);
  Result<Unit> append(const Record& record);
  RecordWriter(RecordWriter&& other) noexcept;
  RecordWriter& operator=(RecordWriter&& other) noexcept;
  ~RecordWriter();

 private:
  explicit RecordWriter(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  int fd_ = -1;
  std::string path_;
};

/// The fastest usable record of each task key measured on `device`.
std::map<std::string, Record> best_records(const std::vector<Record>& records, const std::string& device);

}  // namespace pruner
