// Turns record files into a file of features. Every record is counted once: the record is kept, or
// dropped for a reason. Each reason is listed with the place where it came up first.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "dataset/make_summary.h"
#include "dataset/network_set.h"
#include "dataset/record_device.h"
#include "dataset/recorded_program.h"

namespace pruner {

/// `DuplicateRule` chooses among several measurements of one program.
enum class DuplicateRule : uint8_t {
  kBest,  // the fastest measurement; a failure only if there is nothing else
  kLast,  // the latest measurement; of equal times, the later one in the files
};

struct MakeOptions {
  std::vector<std::string> records;  // files, patterns, folders
  std::string out_file;
  int64_t sample_in_files = 0;   // 0: all files
  int64_t min_sample_size = 48;  // least programs of a task (TenSet's)
  int64_t max_tasks = 0;         // keeps so many first tasks; 0: all
  uint64_t seed = 0;             // seed of the sample of files
  bool keep_failed = true;
  DuplicateRule duplicates = DuplicateRule::kBest;
  std::vector<DeviceLabel> targets;  // only records of these targets; empty: of any
  bool mixed_targets = false;        // records of several devices may come without `targets`
  int jobs = 1;
};

/// `MakeTools` holds the tools of make_dataset(); all of them outlive the call. If `only` has no
/// networks, all tasks are kept.
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
