// A task: one compute DAG on one target, the unit that is tuned.
#pragma once

#include <string>

#include "target/target.h"
#include "tensor/compute_dag.h"

namespace pruner {

struct Task {
  ComputeDag dag;
  Target target;
  std::string key;   // workload_key(dag)
  std::string name;  // for people: "conv2d 1x56x56x64 3x3 -> 64 +bias +relu"
  double flops = 0;  // flop_count(dag)
};

Task make_task(ComputeDag dag, Target target, std::string name);

}  // namespace pruner
