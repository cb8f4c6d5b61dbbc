// Turns the work dir of a run of tune into the numbers of its page. Numbers that are not in the
// folder are computed again from its programs: the drafts, and the schedule that needs no search.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "record/manifest.h"
#include "record/record.h"
#include "report/html/sections.h"
#include "space/space.h"

namespace pruner {

/// A task with all of its programs.
struct KnownTask {
  Task task;
  Space space;
  Candidate untuned;  // default_schedule()
};

/// `KnownTasks` keeps tasks by workload key. Each task is made once, since a page that is written
/// anew every few seconds asks again.
class KnownTasks {
 public:
  /// Makes the tasks of `dags` (by key) that are not known yet, on `target`, by `jobs` threads.
  void add(const std::map<std::string, std::pair<std::string, ComputeDag>>& dags,
           const Target& target,
           int jobs);
  /// Returns nullptr if the task is not known.
  const KnownTask* find(const std::string& workload_key) const;

 private:
  std::map<std::string, std::unique_ptr<KnownTask>> tasks_;
};

struct RunFolder {
  RunManifest manifest;
  std::vector<TaskFacts> tasks;
  std::vector<TrialFacts> trials;  // trials of the search that ran
  std::vector<Remeasured> remeasured;
  Reasons failures;
  int64_t measured = 0;       // trials, with failed and repeated ones
  int64_t beside_others = 0;  // trials while other processes had much of the cores' time
  int64_t damaged = 0;        // lines of the file that are no records
  std::string no_draft;       // why no program has a draft; empty: some have
  std::string records_hash;   // hash of the file's bytes
  Ceiling ceiling;

  /// Returns the sum over the tasks of weight x `time`; nullopt if a task has no time.
  std::optional<double> sum_s(std::optional<double> TaskFacts::*time) const;
};

/// Errors: `path` is no folder, or has no run.json or no readable records.json.
Result<RunFolder> read_run_folder(const std::string& path, KnownTasks& known, int jobs);

}  // namespace pruner
