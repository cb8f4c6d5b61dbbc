#include "tune/task_file.h"

#include <sstream>

#include "support/file.h"

namespace pruner {

Result<Unit> write_task_file(const std::string& path, std::span<const WeightedTask> tasks) {
  std::string lines;
  for (const WeightedTask& weighted : tasks) {
    lines += print_json({{"workload_key", weighted.task.key},
                         {"name", weighted.task.name},
                         {"weight", weighted.weight},
                         {"dag", dag_to_json(weighted.task.dag)}}) +
             "\n";
  }
  return write_file(path, lines);
}

static Result<FiledTask> read_task(const std::string& line) {
  TRY_ASSIGN(const Json json, parse_json(line));
  FiledTask task;
  TRY_ASSIGN(task.key, json_get<std::string>(json, "workload_key"));
  TRY_ASSIGN(task.name, json_get<std::string>(json, "name"));
  TRY_ASSIGN(task.weight, json_get<int>(json, "weight"));
  TRY_ASSIGN(const Json dag, json_get<Json>(json, "dag"));
  TRY_ASSIGN(task.dag, dag_from_json(dag));
  if (workload_key(task.dag) != task.key) return Error("the DAG is not that of its key");
  return task;
}

Result<std::vector<FiledTask>> read_task_file(const std::string& path) {
  TRY_ASSIGN(const std::string text, read_file(path));
  std::vector<FiledTask> tasks;
  std::istringstream lines(text);
  int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    Result<FiledTask> task = read_task(line);
    if (!task.ok()) return Error(path, ":", number, ": ", task.error().message());
    tasks.push_back(*std::move(task));
  }
  return tasks;
}

}  // namespace pruner
