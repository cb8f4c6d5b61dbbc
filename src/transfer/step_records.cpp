#include "transfer/step_records.h"

#include <algorithm>

#include "ansor/own_points.h"
#include "record/reasons.h"
#include "tensor/operators.h"

namespace pruner {

namespace {

void add_counts(std::map<std::string, int64_t>& to, const std::map<std::string, int64_t>& part) {
  for (const auto& [what, count] : part) to[what] += count;
}

/// "tiles 12, unrolling 3"
std::string list_of(const std::map<std::string, int64_t>& counts) {
  std::string text;
  for (const auto& [what, count] : counts)
    text += (text.empty() ? "" : ", ") + what + " " + std::to_string(count);
  return text;
}

/// " (tiles 12)", or nothing.
std::string in_brackets(const std::string& text) { return text.empty() ? "" : " (" + text + ")"; }

}  // namespace

void SourceCounts::add(const SourceCounts& part) {
  records += part.records;
  failed += part.failed;
  tasks += part.tasks;
  same += part.same;
  nearest += part.nearest;
  add_counts(elsewhere, part.elsewhere);
  add_counts(changed, part.changed);
  add_counts(unusable, part.unusable);
}

std::string SourceCounts::print() const {
  std::string text = std::to_string(records) + " records";
  for (const auto& [backend, count] : elsewhere)
    text += ", " + std::to_string(count) + " of " + backend;
  if (failed > 0) text += ", " + std::to_string(failed) + " failed";
  if (tasks == 0) return text;
  text += "; the best of " + std::to_string(tasks) + " tasks: " + std::to_string(same) +
          " as recorded, " + std::to_string(nearest) + " as the nearest candidate" +
          in_brackets(list_of(changed));
  for (const auto& [why, count] : unusable) text += ", " + std::to_string(count) + " " + why;
  return text;
}

std::string backend_of(std::string_view target) {
  return std::string(target.substr(0, target.find(' ')));
}

bool same_kind(const Record& record, const Target& target) {
  const std::optional<Backend> backend = parse_backend(backend_of(record.target));
  return (!backend || row_of(*backend).is_gpu) == target.is_gpu();
}

const StepRecords::OwnTask* StepRecords::own_task(const ansor::OwnOperator& found) {
  const auto [entry, is_new] = tasks_.try_emplace(found.text);
  if (!is_new) return entry->second.get();
  Result<ComputeDag> dag = parse_operator(found.text);
  if (!dag.ok()) return nullptr;
  std::optional<ansor::OwnOperator> analysed = ansor::own_operator(*dag);
  if (!analysed) return nullptr;
  Task task = make_task(*std::move(dag), target_, found.name);
  Space space = make_space(task);
  entry->second =
      std::make_unique<OwnTask>(OwnTask{std::move(task), std::move(space), *std::move(analysed)});
  return entry->second.get();
}

Result<Record> StepRecords::to_own(const Record& record, SourceCounts& counts) {
  const ansor::WorkloadEntry& workload = workloads_.find(record.workload_key);
  if (workload.variants.empty()) {
    const char* hint = workloads_.size() == 0 ? "; --dags FILE gives those of hashes" : "";
    return Error("without a DAG (", workload.missing, hint, ")");
  }
  if (!record.steps.is_array() || record.steps.size() != 2) return Error("without steps");
  TRY_ASSIGN(const std::vector<ansor::Step> steps, ansor::steps_from_json(record.steps[1]));
  const Result<ansor::ReplayNest> nest = ansor::replay(workload, steps);
  if (!nest.ok())
    return Error("whose steps do not replay (", general_reason(nest.error().message()), ")");
  const std::optional<ansor::OwnOperator> found = ansor::own_operator(nest->structure->task);
  const OwnTask* const own = found ? own_task(*found) : nullptr;
  if (own == nullptr) return Error("of no operator of ours");
  std::vector<ansor::PointMatch> matches;
  for (size_t s = 0; s < own->space.sketches.size(); ++s) {
    const Sketch& sketch = own->space.sketches[s];
    if (sketch.form != "direct") continue;
    const SketchId id{static_cast<int32_t>(s)};
    matches.push_back(ansor::match_operator(id, sketch, own->analysed, *found, *nest->structure));
  }
  TRY_ASSIGN(const ansor::NearestPoint point,
             ansor::nearest_point(own->space, matches, nest->state));
  ++(point.same() ? counts.same : counts.nearest);
  for (const std::string& what : point.changed) ++counts.changed[what];
  Record made = make_record(own->task, own->space, point.candidate, record.result);
  made.origin = record.origin;
  made.device.clear();  // not measured here
  return made;
}

std::vector<Record> StepRecords::read(const std::vector<Record>& records, SourceCounts& counts) {
  std::map<std::string, std::vector<const Record*>> tasks;
  for (const Record& record : records) {
    ++counts.records;
    if (!same_kind(record, target_)) {
      ++counts.elsewhere[backend_of(record.target)];
    } else if (!record.result.ok()) {
      ++counts.failed;
    } else {
      tasks[record.workload_key].push_back(&record);
    }
  }
  counts.tasks += static_cast<int64_t>(tasks.size());
  std::vector<Record> best;
  for (auto& [key, timed] : tasks) {
    std::ranges::sort(timed, {}, [](const Record* record) { return record->result.cost_s(); });
    std::string why;
    for (const Record* record : timed) {
      Result<Record> own = to_own(*record, counts);
      if (own.ok()) {
        best.push_back(*std::move(own));
        why.clear();
        break;
      }
      if (why.empty()) why = own.error().message();
    }
    if (!why.empty()) ++counts.unusable[why];
  }
  return best;
}

}  // namespace pruner
