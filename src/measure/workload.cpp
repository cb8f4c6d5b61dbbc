#include "measure/workload.h"

#include <utility>

#include "tensor/interpreter.h"

namespace pruner {

Result<Workload> make_workload(Task task, const MeasureOptions& options) {
  Workload workload{std::move(task), {}, {}, {}, {}};
  const ComputeDag& dag = workload.task.dag;
  Rng rng(options.seed);
  workload.inputs = random_inputs(dag, rng);
  for (const Tensor& input : workload.inputs) {
    TRY_ASSIGN(GuardedBuffer buffer, GuardedBuffer::make(input.bytes()));
    buffer.copy_from(input.data());
    buffer.make_read_only();
    workload.buffers.push_back(std::move(buffer));
  }
  for (const StageId input : dag.inputs()) workload.constant.push_back(dag[input].constant);
  workload.outputs = expect_outputs(dag, workload.inputs, options.check_elements, rng);
  return workload;
}

}  // namespace pruner
