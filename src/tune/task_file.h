// The file of a run's tasks in its work dir: records name tasks by a hash, and this file has the
// tasks of the hashes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "graph/partition.h"

namespace pruner {

/// The file in a work dir.
inline constexpr const char* kWorkDirTasks = "tasks.json";

/// A task of a file, without a target.
struct FiledTask {
  std::string key, name;
  int weight = 1;
  ComputeDag dag;
};

/// A line a task, {"workload_key","name","weight","dag"}: --dags reads them, too.
Result<Unit> write_task_file(const std::string& path, std::span<const WeightedTask> tasks);
/// Errors name the line that is no task, or whose DAG is of another key.
Result<std::vector<FiledTask>> read_task_file(const std::string& path);

}  // namespace pruner
