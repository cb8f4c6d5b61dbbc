#include "measure/workload.h"

#include <utility>

#include "tensor/interpreter.h"

namespace pruner {

Result<Workload> make_workload(Task task, const MeasureOptions& options) {
  Workload workload{std::move(task), {}, {}, {}, {}, {}};
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
  const Target& target = workload.task.target;
  // A core's own caches do not replace the oldest line first.
  constexpr int64_t kFillings = 2;
  if (!target.is_gpu()) {
    workload.filling.assign(static_cast<size_t>(kFillings * target.l2_bytes * target.threads),
                            std::byte{1});
  }
  return workload;
}

}  // namespace pruner
