#include "tensor/task.h"

#include <utility>

namespace pruner {

Task make_task(ComputeDag dag, Target target, std::string name) {
  Task task{std::move(dag), std::move(target), {}, std::move(name), 0};
  task.key = workload_key(task.dag);
  task.flops = flop_count(task.dag);
  return task;
}

}  // namespace pruner
