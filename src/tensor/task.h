// A task: one compute DAG on one target, the unit that is tuned.
#pragma once

#include <string>

#include "target/target.h"
#include "tensor/compute_dag.h"

namespace pruner {

/// Built once, by make_task(), and read by all that comes after.
struct Task {
  ComputeDag dag;
  Target target;
  std::string key;   // workload_key(dag)
  std::string name;  // name for people: "conv2d 1x56x56x64 3x3 -> 64 +bias +relu"
  double flops = 0;  // flop_count(dag)
};

/// Fills in the key and the FLOPs of the DAG.
Task make_task(ComputeDag dag, Target target, std::string name);

}  // namespace pruner
