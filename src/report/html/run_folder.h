// The work dir of a run of tune -> the numbers of its page. What the folder does not say is
// computed again from its programs: what the draft says of them, the schedule that needs no search.
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

/// Tasks by workload key, each made once: a page that is written anew every few seconds asks again.
class KnownTasks {
 public:
  /// Makes the tasks of `dags` (by key) that are not known yet, on `target`, by `jobs` threads.
  void add(const std::map<std::string, std::pair<std::string, ComputeDag>>& dags,
           const Target& target,
           int jobs);
  /// nullptr: not known.
  const KnownTask* find(const std::string& workload_key) const;

 private:
  std::map<std::string, std::unique_ptr<KnownTask>> tasks_;
};

struct RunFolder {
  RunManifest manifest;
  std::vector<TaskFacts> tasks;
  std::vector<TrialFacts> trials;  // of the search, that ran
  std::vector<Remeasured> remeasured;
  Reasons failures;
  int64_t measured = 0;       // trials, failed ones and those measured again among them
  int64_t beside_others = 0;  // while other processes had much of the cores' time
  int64_t damaged = 0;        // lines of the records that are none
  std::string no_draft;       // why no program has a draft; empty: some have
  std::string records_hash;   // of the bytes of the file
  Ceiling ceiling;

  /// Sum over the tasks of weight x what `time` says; nullopt where one has none.
  std::optional<double> sum_s(std::optional<double> TaskFacts::*time) const;
};

/// Errors: `path` is no folder, or has no run.json or no readable records.json.
Result<RunFolder> read_run_folder(const std::string& path, KnownTasks& known, int jobs);

}  // namespace pruner
