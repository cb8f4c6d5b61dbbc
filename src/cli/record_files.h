// The record files that a command line names, and what is said of those that are damaged.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/options.h"
#include "record/record_stream.h"

namespace pruner {

/// Record files by their place or by --records.
struct RecordFileOptions {
  std::vector<std::string> files, records;
  int jobs = 0;  // set by add_to()

  void add_to(CLI::App& app);
  /// The files that are named; `command` is the one whose error says that there is none.
  Result<std::vector<RecordPath>> find(const char* command) const;
};

/// The files that are named, patterns and folders among them; an error when nothing is.
Result<std::vector<RecordPath>> read_record_paths(const std::vector<std::string>& named,
                                                  const char* command);

/// The records of files, folders and patterns, a list a file, for those who use them: tuning,
/// transfer, compiling. Lines that are no records are named on standard error. Errors: what is
/// wrong with `flag`; a name matches nothing, no line is a record, or a packed file ends early.
Result<std::vector<FileRecords>> read_record_files(const std::vector<std::string>& named,
                                                   const char* flag,
                                                   int jobs);

/// Returns the file of -o; an error if -o is missing.
Result<std::string> read_out_file(const std::string& out_file,
                                  const char* command,
                                  const char* example);

/// Names on standard error the lines that are no record, before the records are used. Errors: no
/// line is a record, or a packed file ends early (the error says how to save the rest).
Result<Unit> check_intact(const StreamSummary& summary, std::span<const RecordPath> files);
/// Returns the result of a command that looks into files or makes others of them: kDone or the same
/// errors. The command has taken the records that could be read.
Result<int> done_reading(const StreamSummary& summary, std::span<const RecordPath> files);

/// The error of a packed file that ends early.
Error ends_early(const std::string& path);

/// Paths as a table shows them: below this folder by their way from it; others, where all files
/// have an absolute path, from the deepest folder that has them all, which a heading names.
class ShownPaths {
 public:
  explicit ShownPaths(std::span<const RecordPath> files);
  /// "Files are in FOLDER\n", or nothing.
  std::string heading() const;
  std::string operator()(const std::string& path) const;

 private:
  std::string here_, common_;  // with a slash at the end; empty: no such folder
};

/// {"files","other_files","records","damaged_lines","damaged_files","damage":[...]}
Json to_json(const StreamSummary& summary);

}  // namespace pruner
