// A record -> the program that the analysis sees: Ansor's by replaying its steps on the workload's
// DAG, ours by finding its candidate in the task's space.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

#include "analysis/features.h"
#include "analysis/penalty.h"
#include "ansor/workload_table.h"
#include "record/record.h"
#include "space/loop_nest.h"

namespace pruner {

struct RecordedProgram {
  Statements statements;
  std::vector<std::string> buffers;  // names, by stage
  TaskFlags flags{};
  std::vector<int32_t> primitives;  // of the record's steps, or of what our candidate decided
  double cpu_draft_s = 0;  // of a candidate of ours on a CPU: the draft's prediction; 0: another's
  LoopNest nest;           // of a candidate of ours, while its RecordedPrograms live

  bool is_gpu() const;
};

class RecordedPrograms {
 public:
  /// `workloads`: DAGs by key, for Ansor's records. `draft`: what a CPU's draft counts; without it
  /// programs have what models read, and no draft of theirs means anything.
  explicit RecordedPrograms(ansor::WorkloadTable& workloads,
                            std::optional<Penalties> draft = Penalties())
      : workloads_(workloads), draft_(draft) {}

  /// A DAG for our records of its key, and for Ansor's of keys that `workloads` does not know. Not
  /// while records are read.
  void add_task(const ComputeDag& dag);
  /// Why there is no DAG for the record; empty: there is one. May be asked by several threads.
  std::string missing_dag(const Record& record);
  /// The program, or why there is none: no DAG, steps that do not fit it, a candidate that the
  /// space does not have, a kernel beyond the record's own limits of the device. May be asked by
  /// several threads.
  Result<RecordedProgram> read(const Record& record);

 private:
  struct OwnSpace {
    Task task;
    Space space;
  };
  std::optional<ComputeDag> own_dag(const Record& record) const;
  Result<const OwnSpace*> own_space(const Record& record);
  TaskFlags flags_of(const std::shared_ptr<const ansor::Structure>& structure);
  Result<RecordedProgram> read_own(const Record& record);
  Result<RecordedProgram> read_steps(const Record& record);

  ansor::WorkloadTable& workloads_;
  std::optional<Penalties> draft_;
  std::map<std::string, ComputeDag> dags_;   // of added tasks, by key
  std::unique_ptr<ansor::Structures> only_;  // of the one that was added
  std::mutex spaces_mutex_;
  std::map<std::string, std::unique_ptr<OwnSpace>> spaces_;  // by key and target
  std::shared_mutex flags_mutex_;
  std::map<std::shared_ptr<const ansor::Structure>, TaskFlags> flags_;
};

}  // namespace pruner
