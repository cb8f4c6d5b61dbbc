// Workload keys of records -> what their steps are replayed on: a registered function's DAG, or one
// that a DAG file gives for the key. A key is looked up once; its DAG is analysed once.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "ansor/nest.h"

namespace pruner::ansor {

/// A workload, or why there is none.
struct WorkloadEntry {
  std::vector<std::unique_ptr<Structures>> variants;  // DAGs it may be; none: see `missing`
  std::string missing;
};

class WorkloadTable {
 public:
  /// Adds the DAG of a task: {"workload_key": ..., "dag": [...]}, of stages or of TVM's own lines.
  /// One that can't be read is the reason that its records have none.
  Result<Unit> add(const Json& task);
  /// Adds the tasks of a file: one JSON object, or one a line. What is no task is an error.
  Result<Unit> add_file(const std::string& path);
  /// May be asked by several threads; the entry stays.
  const WorkloadEntry& find(const std::string& workload_key);
  /// The DAG that a file gave for the key, its stages in the file's order; null: none did.
  const ComputeDag* dag(const std::string& workload_key) const;
  int size() const { return static_cast<int>(dags_.size()); }

 private:
  WorkloadEntry make_entry(const std::string& workload_key) const;

  std::map<std::string, ComputeDag> dags_;     // keyed by canonical key
  std::map<std::string, std::string> unread_;  // reason of each unread DAG, by canonical key
  std::mutex mutex_;
  std::map<std::string, WorkloadEntry, std::less<>> entries_;
};

/// Replays steps on the variant of the workload that they fit.
Result<ReplayNest> replay(const WorkloadEntry& workload, std::span<const Step> steps);

/// The same text for the forms of a key that mean one task: shapes flat or by tensor.
std::string canonical_key(const std::string& workload_key);

}  // namespace pruner::ansor
