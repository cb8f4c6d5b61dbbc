// Record files -> their records one after the other, parsed by all threads: memory does not grow
// with the files. No line is lost: what is no record is counted and named.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "record/record_id.h"
#include "record/record_paths.h"

namespace pruner {

/// A record where it was met.
struct StreamedRecord {
  Record record;
  RecordIds ids;
  std::string_view line;  // line in the file, without its end
  const std::string& path;
  int64_t number;  // number of the line, from 1
};

/// kEndsEarly says what is wrong with a packed file whose end is missing or whose bytes changed.
inline constexpr const char* kEndsEarly = "ends early: damaged or cut off";

/// Lines that are no records, and files that end early.
struct Damage {
  static constexpr size_t kNamed = 20;

  int64_t lines = 0, files = 0;
  std::string first_file;          // first file that ends early
  std::vector<std::string> named;  // "FILE:LINE: why", the first kNamed

  void add_line(const std::string& path, int64_t number, std::string_view why);
  /// Takes back the last line of the only file so far, which was cut off within it.
  void drop_last_line();
  void add_file(const std::string& path);
  void add(const Damage& part);
  bool any() const { return lines + files > 0; }
};

/// StreamSummary says what was read.
struct StreamSummary {
  int64_t files = 0;    // files that hold records, or were named
  int64_t other = 0;    // other files of a folder, which hold no records
  int64_t records = 0;  // lines that are records
  Damage damage;        // damage of the files counted in `files`
};

/// Gives every record to `take`, in the order of the files and their lines; an error of it ends
/// the stream. Empty lines and comments (#) are passed over. Errors: a file cannot be read.
Result<StreamSummary> stream_records(std::span<const RecordPath> files,
                                     int jobs,
                                     const std::function<Result<Unit>(StreamedRecord&&)>& take);

/// All records of a file.
struct FileRecords {
  std::string path;
  std::vector<Record> records;
};
struct LoadedRecords {
  std::vector<FileRecords> files;  // files that hold records
  StreamSummary summary;
};
Result<LoadedRecords> load_records(std::span<const RecordPath> files, int jobs);

}  // namespace pruner
