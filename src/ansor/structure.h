// The DAG after a state's cache, rfactor and inline steps: what each stage of the state computes.
// Records of a task that differ in tiles only share one, so it is made once for many.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "ansor/state.h"

namespace pruner::ansor {

struct Structure {
  ComputeDag task;                        // before any step
  ComputeDag dag;                         // stage i is the state's; inlined ones stay, unread
  std::vector<bool> inlined;              // one per stage
  std::vector<std::vector<int>> readers;  // compute stages that load it, ascending
  std::vector<std::vector<Expr>> loads;   // distinct Loads in a stage's body, in order
};

/// The DAG with its stages in Ansor's order: each after what it reads, in the order it reads it.
ComputeDag in_ansor_order(const ComputeDag& dag);

/// Structures of one DAG, made when first asked for; may be asked by several threads.
class Structures {
 public:
  explicit Structures(const ComputeDag& dag) : dag_(in_ansor_order(dag)) {}
  const ComputeDag& dag() const { return dag_; }
  /// The structure of a state of this DAG, shared by all states of equal edits and inlined stages.
  /// The error names a stage that can't be inlined: it is reduced or an output.
  Result<std::shared_ptr<const Structure>> of(const State& state);

 private:
  ComputeDag dag_;
  std::mutex mutex_;
  std::map<std::vector<int64_t>, std::shared_ptr<const Structure>> made_;
};

}  // namespace pruner::ansor
