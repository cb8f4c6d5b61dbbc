// Turns a record into the program that the analysis sees. The steps of Ansor's records are replayed
// on the workload's DAG; the candidates of our records are found in the task's space.
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
  std::vector<std::string> buffers;  // names, one per stage
  TaskFlags flags{};
  std::vector<int32_t> primitives;  // sequence of the record's steps, or our candidate's decisions
  double cpu_draft_s = 0;           // draft of our candidate on a CPU; 0: other programs
  LoopNest nest;                    // our candidate's, while its RecordedPrograms live

  bool is_gpu() const;
};

class RecordedPrograms {
 public:
  /// `workloads` holds the DAGs of Ansor's records by key. `draft` holds the penalties that a CPU's
  /// draft counts. Without `draft`, programs have the models' inputs, and no draft is meaningful.
  explicit RecordedPrograms(ansor::WorkloadTable& workloads,
                            std::optional<Penalties> draft = Penalties())
      : workloads_(workloads), draft_(draft) {}

  /// Adds a DAG for our records of its key, and for Ansor's records whose key `workloads` does not
  /// know. Must not be called while records are read.
  void add_task(const ComputeDag& dag);
  /// Returns why the record has no DAG; empty if there is one. Several threads may call it.
  std::string missing_dag(const Record& record);
  /// Returns the program. Errors: there is no DAG; steps do not fit the DAG; the candidate is not
  /// in the space; the kernel exceeds the record's device limits. Several threads may call read().
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
  std::map<std::string, ComputeDag> dags_;   // added DAGs by key
  std::unique_ptr<ansor::Structures> only_;  // structures of the only added DAG
  std::mutex spaces_mutex_;
  std::map<std::string, std::unique_ptr<OwnSpace>> spaces_;  // spaces by key and target
  std::shared_mutex flags_mutex_;
  std::map<std::shared_ptr<const ansor::Structure>, TaskFlags> flags_;
};

}  // namespace pruner
