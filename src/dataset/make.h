// Record files -> a file of features. Every record is counted once: it is kept, or dropped for a
// reason that says where it came up first.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "dataset/make_summary.h"
#include "dataset/network_set.h"
#include "dataset/record_device.h"
#include "dataset/recorded_program.h"

namespace pruner {

/// What is kept of several measurements of one program.
enum class DuplicateRule : uint8_t {
  kBest,  // the fastest; a failure only where there is nothing else
  kLast,  // what was measured last, in the order of the files
};

struct MakeOptions {
  std::vector<std::string> records;  // files, patterns, folders
  std::string out_file;
  int64_t sample_in_files = 0;   // 0: all files
  int64_t min_sample_size = 48;  // of a task (TenSet's)
  int64_t max_tasks = 0;         // the first so many; 0: all
  uint64_t seed = 0;             // of the sample of files
  bool keep_failed = true;
  DuplicateRule duplicates = DuplicateRule::kBest;
  std::vector<DeviceLabel> targets;  // only records of these; none: of any
  bool mixed_targets = false;        // records of several devices may come without `targets`
  int jobs = 1;
};

/// What a making works with; all of it outlives the call. `only`: without networks, all tasks.
struct MakeTools {
  RecordedPrograms& programs;
  NetworkTasks& held_out;
  NetworkTasks& only;
  std::function<void(int64_t files, int64_t all_files, int64_t records)> on_progress;
};

/// Errors: no file, nothing to keep, records of several devices where one was expected, or
/// `out_file` can't be written.
Result<MakeSummary> make_dataset(const MakeOptions& options, const MakeTools& tools);

}  // namespace pruner
