#include "dataset/recorded_program.h"

#include <algorithm>

#include "analysis/draft.h"
#include "analysis/gpu_limits.h"
#include "analysis/primitives.h"
#include "analysis/replayed_statements.h"
#include "ansor/own_steps.h"
#include "tensor/operators.h"

namespace pruner {

bool RecordedProgram::is_gpu() const {
  return std::ranges::any_of(statements.statements, &Statement::gpu);
}

void RecordedPrograms::add_task(const ComputeDag& dag) {
  dags_.insert_or_assign(workload_key(dag), dag);
  only_ = dags_.size() == 1 ? std::make_unique<ansor::Structures>(dag) : nullptr;
}

static std::vector<std::string> names_of(const ComputeDag& dag) {
  std::vector<std::string> names;
  for (const Stage& stage : dag.stages) names.push_back(stage.name);
  return names;
}

/// Returns the DAG of an added task, of a DAG file, or of the operator that the record names.
std::optional<ComputeDag> RecordedPrograms::own_dag(const Record& record) const {
  if (const auto added = dags_.find(record.workload_key); added != dags_.end())
    return added->second;
  if (const ComputeDag* dag = workloads_.dag(record.workload_key)) return *dag;
  const Result<ComputeDag> dag = parse_operator(record.task_name);
  if (dag.ok() && workload_key(*dag) == record.workload_key) return *dag;
  return std::nullopt;
}

std::string RecordedPrograms::missing_dag(const Record& record) {
  if (record.sketch_name.empty())
    return only_ != nullptr ? "" : workloads_.find(record.workload_key).missing;
  const std::lock_guard lock(spaces_mutex_);
  const auto space = spaces_.find(record.workload_key + record.target);
  const bool known = (space != spaces_.end() && space->second) || own_dag(record);
  return known ? "" : "a task of ours whose DAG is not given";
}

Result<const RecordedPrograms::OwnSpace*> RecordedPrograms::own_space(const Record& record) {
  const std::lock_guard lock(spaces_mutex_);
  auto& own = spaces_[record.workload_key + record.target];
  if (own != nullptr) return own.get();
  std::optional<ComputeDag> dag = own_dag(record);
  if (!dag) return Error("a record of task ", record.workload_key, ", whose DAG is not given");
  TRY_ASSIGN(Target target, parse_target(record.target, record.threads));
  Task task = make_task(*std::move(dag), target, record.task_name);
  own = std::make_unique<OwnSpace>(OwnSpace{task, make_space(task)});
  return own.get();
}

/// Reads the flags from the DAG's print, once for each structure.
TaskFlags RecordedPrograms::flags_of(const std::shared_ptr<const ansor::Structure>& structure) {
  {
    const std::shared_lock lock(flags_mutex_);
    if (const auto found = flags_.find(structure); found != flags_.end()) return found->second;
  }
  const TaskFlags flags = task_flags(structure->task);
  const std::lock_guard lock(flags_mutex_);
  return flags_.emplace(structure, flags).first->second;
}

Result<RecordedProgram> RecordedPrograms::read_own(const Record& record) {
  TRY_ASSIGN(const OwnSpace* own, own_space(record));
  const std::optional<Candidate> candidate = resolve(own->space, record);
  if (!candidate)
    return Error("sketch ", record.sketch_name, " has no such candidate in this version");
  LoopNest nest = make_loop_nest(own->space, *candidate);
  RecordedProgram program{make_statements(nest),
                          names_of(*nest.dag),
                          task_flags(own->task.dag),
                          primitives(ansor::steps_of(own->space, *candidate)),
                          0,
                          {}};
  if (draft_ && !own->task.target.is_gpu())
    program.cpu_draft_s = draft_latency_s(nest, own->task.target, *draft_);
  program.nest = std::move(nest);
  return program;
}

Result<RecordedProgram> RecordedPrograms::read_steps(const Record& record) {
  if (!record.steps.is_array() || record.steps.size() != 2) return Error("no list of steps");
  TRY_ASSIGN(const std::vector<ansor::Step> steps, ansor::steps_from_json(record.steps[1]));
  const ansor::WorkloadEntry& workload = workloads_.find(record.workload_key);
  if (workload.variants.empty() && only_ == nullptr) return Error(workload.missing);
  TRY_ASSIGN(
      const ansor::ReplayNest nest,
      workload.variants.empty() ? ansor::replay(*only_, steps) : ansor::replay(workload, steps));
  RecordedProgram program{draft_ ? make_statements(nest) : make_model_statements(nest),
                          names_of(nest.structure->dag),
                          flags_of(nest.structure),
                          primitives(steps),
                          0,
                          {}};
  const std::string beyond = gpu_limit(program.statements, gpu_of_record(record.hardware));
  if (!beyond.empty()) return Error(beyond);
  return program;
}

Result<RecordedProgram> RecordedPrograms::read(const Record& record) {
  return record.sketch_name.empty() ? read_steps(record) : read_own(record);
}

}  // namespace pruner
