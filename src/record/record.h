// Records: one JSON line a trial. A line has Ansor v0.6's keys `i`, `r` and `v`, and one key of
// ours, `p`. `i` is the task and the transform steps (empty if a candidate has no step form); `r`
// is costs, error, all_cost, timestamp. `p` is the sketch by name and structural hash, decisions,
// device, threads, error text. Lines without `p`, of any v0.x, are read as well and printed as
// v0.6.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/measure.h"
#include "space/space.h"
#include "support/json.h"

namespace pruner {

/// kShapesOrigin marks a schedule of another shape of its task, measured to choose kernels for a
/// range of shapes. Its task was not tuned, or no search draws its tiles there.
inline constexpr const char* kShapesOrigin = "shapes";

/// One line, as read: what it says of itself; the candidate is found by resolve().
struct Record {
  std::string workload_key;
  std::string target;  // target text
  std::string task_name;
  std::string sketch_name, sketch_hash;
  std::vector<std::pair<std::string, int32_t>> decisions;  // names and values
  std::string device;                                      // device_fingerprint
  int threads = 0;
  MeasureResult result;
  // "search", "final" (re-measured best), "collect" (chosen by no model), "foreign" (no `p`),
  // kShapesOrigin
  std::string origin;
  std::string mode = {};  // chooser of the candidate: "pam", "ansor-untrained"; empty: not said

  // The rest of `i`, which Ansor's readers need:
  std::vector<int64_t> hardware;  // 8 numbers, or none in old files
  std::string target_host;
  std::string version = "v0.6";                 // version of the line as read; v0.6 is written
  int layout_rewrite = 0;                       // 2: constants are packed ahead of time
  Json task_inputs = Json::array();             // names of inputs with given values
  Json steps = {Json::array(), Json::array()};  // transform steps of a foreign record
};

Record make_record(const Task& task,
                   const Space& space,
                   const Candidate& candidate,
                   const MeasureResult& result);
/// One line, without its end.
std::string print_line(const Record& record);
/// The error says what a record line has and this one has not.
Result<Record> parse_line(std::string_view line);

/// A line of a record file that is neither empty nor a comment (#).
struct RecordLine {
  std::string_view text;
  int64_t number = 0;  // number of the line, from 1
};
std::vector<RecordLine> record_lines(std::string_view content);
/// Whether a file that a folder has as well (RecordPath::named) is one of records, by its lines.
bool look_like_records(std::span<const RecordLine> lines);

/// The record's candidate in this space; the error says that its sketch is not known here any more,
/// is of a form that is not drawn, or which decision is out of range.
Result<Candidate> find_candidate(const Space& space, const Record& record);
/// The same where nobody asks why there is none.
std::optional<Candidate> resolve(const Space& space, const Record& record);

/// RecordFile is the result of reading a record file. A torn last line and lines that are no record
/// are counted and the first is named, never a reason to stop. Empty lines and comments (#) are
/// neither.
struct RecordFile {
  std::vector<Record> records;
  int64_t skipped = 0;
  std::string first_skipped;  // "records.json:17: not JSON at byte 3"
};
Result<RecordFile> read_records(const std::string& path);

/// Appends lines, each with the operating system before the call returns, so that only a power cut
/// can lose it. Opening creates the file, and cuts a torn last line off into `path`.torn. A file
/// has one writer: opening it in a second process is an error.
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

/// The fastest usable record of each task key measured on `device`. A "final" record replaces what
/// the search had measured before it: those times led to it, and the lowest of many is a lucky one.
std::map<std::string, Record> best_records(const std::vector<Record>& records,
                                           const std::string& device);

}  // namespace pruner
