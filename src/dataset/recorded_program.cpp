#include "dataset/recorded_program.h"

#include <algorithm>

#include "analysis/draft.h"
#include "analysis/gpu_limits.h"

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

Result<RecordedProgram> RecordedPrograms::read_own(const Record& record) {
  const auto dag = dags_.find(record.workload_key);
  if (dag == dags_.end())
    return Error("a record of task ", record.workload_key, ", whose DAG is not given");
  auto& own = spaces_[record.workload_key + record.target];
  if (own == nullptr) {
    TRY_ASSIGN(Target target, parse_target(record.target, record.threads));
    Task task = make_task(dag->second, target, record.task_name);
    own = std::make_unique<OwnSpace>(OwnSpace{task, make_space(task)});
  }
  const std::optional<Candidate> candidate = resolve(own->space, record);
  if (!candidate)
    return Error("sketch ", record.sketch_name, " has no such candidate in this version");
  const LoopNest nest = make_loop_nest(own->space, *candidate);
  RecordedProgram program{make_statements(nest), names_of(*nest.dag), task_flags(own->task.dag), 0};
  if (!own->task.target.is_gpu())
    program.cpu_draft_s = draft_latency_s(nest, own->task.target, penalties_);
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
  RecordedProgram program{
      make_statements(nest), names_of(nest.structure->dag), task_flags(nest.structure->task), 0};
  const std::string beyond = gpu_limit(program.statements, gpu_of_record(record.hardware));
  if (!beyond.empty()) return Error(beyond);
  return program;
}

Result<RecordedProgram> RecordedPrograms::read(const Record& record) {
  return record.sketch_name.empty() ? read_steps(record) : read_own(record);
}

}  // namespace pruner
