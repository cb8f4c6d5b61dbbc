// The folder of a tuning run: records.json (one line a trial), total_latency.tsv (the curve),
// run.json (what was run), tasks.json (its tasks, task_file.h), and the module. The same folder
// again resumes.
#pragma once

#include <optional>
#include <string>

#include "record/record.h"
#include "record/record_paths.h"
#include "tune/curve.h"

namespace pruner {

/// The curve of a run in its work dir.
inline constexpr const char* kWorkDirCurve = "total_latency.tsv";

class WorkDir {
 public:
  /// Makes the folder, and checks that it can be written.
  static Result<WorkDir> open(const std::string& path);
  /// Makes room for new records: records.json becomes records.json.1, or the next free number.
  /// Errors: another run writes to them.
  Result<Unit> set_aside() const;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string records() const { return file(kWorkDirRecords); }
  std::string curve() const { return file(kWorkDirCurve); }

  /// The records of earlier runs; none when there is no file. A line in the middle that is no
  /// record is an error: it names the line.
  Result<std::vector<Record>> read_records() const;

  /// Adds a point to the curve: `ElapsedTime(s)\t%.0f\tEstimatedLatency(ms)\t%.3f\tTrials\t%d`, the
  /// latency N/A until it is known, and with six digits below a millisecond.
  Result<Unit> append_latency(double elapsed_s,
                              std::optional<double> latency_s,
                              int64_t trials) const;

 private:
  explicit WorkDir(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

/// The curve of a total_latency.tsv: its points where the latency is another one, and the trials
/// and seconds of its last line. A last line that was cut short is left out.
Result<TuningCurve> read_latency_curve(const std::string& path);

}  // namespace pruner
