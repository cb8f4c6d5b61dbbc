#include "ansor/workload_table.h"

#include <algorithm>

#include "ansor/dag_text.h"
#include "ansor/workloads.h"
#include "support/check.h"
#include "support/gzip.h"
#include "tensor/check_accesses.h"

namespace pruner::ansor {
namespace {

void flatten(const Json& json, std::string& text) {
  if (json.is_array()) {
    for (const Json& entry : json) flatten(entry, text);
  } else {
    text += (text.empty() ? "" : " ") + json.dump();
  }
}

// A DAG as TVM prints it, one line a stage; the extents that the lines don't have are the key's.
Result<ComputeDag> text_dag(const Json& lines, const std::string& key) {
  const Result<Json> shapes = parse_json(key);
  if (!shapes.ok() || !shapes->is_array()) return Error("the workload key is no list");
  const Json& last = shapes->back();
  std::vector<int64_t> output;
  for (const Json& extent : last.is_array() ? last : Json::array()) {
    if (!extent.is_number_integer()) return Error("the key's shapes are no numbers");
    output.push_back(extent.get<int64_t>());
  }
  std::vector<std::string> text;
  for (const Json& line : lines) text.push_back(line.is_string() ? line.get<std::string>() : "");
  return dag_from_text(text, output);
}

std::string name_of(const Json& key) {
  const Json& name = key.is_array() && !key.empty() ? key[0] : key;
  return name.is_string() ? name.get<std::string>() : std::string();
}

// How many stages the DAG has whose last stage the steps come to.
// A step's number of a stage counts the stages that earlier steps added; these are taken off.
int stages_used(std::span<const Step> steps) {
  int used = 0, added = 0;
  for (const Step& step : steps) {
    const int stage = std::visit([](const auto& s) { return s.stage; }, step);
    used = std::max(used, stage - added + 1);
    added += std::holds_alternative<CacheReadStep>(step) ||
             std::holds_alternative<CacheWriteStep>(step) ||
             std::holds_alternative<RfactorStep>(step);
  }
  return used;
}

}  // namespace

Result<ReplayNest> replay(const WorkloadEntry& workload, std::span<const Step> steps) {
  CHECK(!workload.variants.empty());
  if (workload.variants.size() > 1) {
    const int used = stages_used(steps);
    for (const auto& variant : workload.variants) {
      if (variant->dag().size() != used) continue;
      Result<ReplayNest> nest = replay(*variant, steps);
      if (nest.ok()) return nest;
    }
  }
  return replay(*workload.variants[0], steps);
}

std::string canonical_key(const std::string& workload_key) {
  const Result<Json> key = parse_json(workload_key);
  if (!key.ok()) return workload_key;
  std::string text;
  flatten(*key, text);
  return text;
}

Result<Unit> WorkloadTable::add(const Json& task) {
  TRY_ASSIGN(const std::string key, json_get<std::string>(task, "workload_key"));
  TRY_ASSIGN(const Json json, json_get<Json>(task, "dag"));
  const bool text = json.is_array() && !json.empty() && json[0].is_string();
  Result<ComputeDag> dag = text ? text_dag(json, key) : dag_from_json(json);
  const Result<Unit> inside = dag.ok() ? check_accesses(*dag) : Result<Unit>(Unit{});
  if (!inside.ok()) dag = inside.error();
  if (!dag.ok()) {
    unread_[canonical_key(key)] = "its DAG: " + dag.error().message();
    return Unit{};
  }
  dags_.insert_or_assign(canonical_key(key), *std::move(dag));
  return Unit{};
}

Result<Unit> WorkloadTable::add_file(const std::string& path) {
  TRY_ASSIGN(const UnpackedFile file, read_unpacked(path));
  if (const Result<Json> whole = parse_json(file.content); whole.ok()) {
    const Result<Unit> added = add(*whole);
    return added.ok() ? added : Error(path, ": ", added.error().message());
  }
  int64_t number = 0;
  for (size_t begin = 0; begin < file.content.size();) {
    const size_t end = std::min(file.content.find('\n', begin), file.content.size());
    const std::string_view line = std::string_view(file.content).substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.empty()) continue;
    const Result<Json> task = parse_json(line);
    if (!task.ok()) return Error(path, ":", number, ": ", task.error().message());
    if (const Result<Unit> added = add(*task); !added.ok()) {
      return Error(path, ":", number, ": ", added.error().message());
    }
  }
  return Unit{};
}

WorkloadEntry WorkloadTable::make_entry(const std::string& workload_key) const {
  WorkloadEntry entry;
  if (const auto dag = dags_.find(canonical_key(workload_key)); dag != dags_.end()) {
    entry.variants.push_back(std::make_unique<Structures>(dag->second));
    return entry;
  }
  if (const auto unread = unread_.find(canonical_key(workload_key)); unread != unread_.end()) {
    entry.missing = unread->second;
    return entry;
  }
  const Result<Json> key = parse_json(workload_key);
  const std::string name = key.ok() ? name_of(*key) : std::string();
  if (!is_registered_workload(name)) {
    entry.missing = !key.ok()           ? "the workload key is no JSON"
                    : name.size() == 32 ? "a hash without a DAG"  // the digits of an MD5
                                        : "unknown function \"" + name + "\"";
    return entry;
  }
  Result<std::vector<ComputeDag>> dags = registered_workload(*key);
  if (!dags.ok()) {
    entry.missing = dags.error().message();
    return entry;
  }
  for (ComputeDag& dag : *dags) {
    entry.variants.push_back(std::make_unique<Structures>(std::move(dag)));
  }
  return entry;
}

const ComputeDag* WorkloadTable::dag(const std::string& workload_key) const {
  const auto found = dags_.find(canonical_key(workload_key));
  return found == dags_.end() ? nullptr : &found->second;
}

const WorkloadEntry& WorkloadTable::find(const std::string& workload_key) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = entries_.find(workload_key); found != entries_.end()) {
      return found->second;
    }
  }
  // Made without the lock: another thread may make the same, and the first to be kept serves both.
  WorkloadEntry made = make_entry(workload_key);
  const std::lock_guard lock(mutex_);
  return entries_.try_emplace(workload_key, std::move(made)).first->second;
}

}  // namespace pruner::ansor
