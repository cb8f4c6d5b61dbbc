#include "measure/workload.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "measure/narrow_contraction.h"
#include "tensor/interpreter.h"

namespace pruner {

void make_signed(const ComputeDag& dag, std::vector<Tensor>& inputs) {
  const std::vector<StageId> ids = dag.inputs();
  for (size_t i = 0; i < ids.size(); ++i) {
    const Stage& stage = dag[ids[i]];
    if (stage.dtype != DType::kInt8 || stage.index_bound > 0 || !stage.read_at.empty()) continue;
    for (int64_t e = 0; e < inputs[i].num_elements(); ++e)
      inputs[i].set_int(e, inputs[i].get_int(e) - 8);
  }
}

static Result<Unit> take_inputs(Workload& workload, std::vector<Tensor> inputs) {
  workload.inputs = std::move(inputs);
  for (const Tensor& input : workload.inputs) {
    TRY_ASSIGN(GuardedBuffer buffer, GuardedBuffer::make(input.bytes()));
    buffer.copy_from(input.data());
    buffer.make_read_only();
    workload.buffers.push_back(std::move(buffer));
  }
  return Unit{};
}

double workload_bytes(const ComputeDag& dag) {
  double bytes = 0;
  for (const Stage& stage : dag.stages) {
    const int copies = (stage.is_placeholder() ? 2 : 0) + (stage.output ? 1 : 0);
    bytes += copies * static_cast<double>(stage.num_elements()) * dtype_bytes(stage.dtype);
  }
  return bytes;
}

static Result<Unit> keep_outputs(Workload& workload) {
  workload.peer = std::make_unique<PeerOutputs>(workload.outputs);
  if (!workload.peer->mapped())
    return Error("the outputs of ", workload.task.name, ": ", std::strerror(ENOMEM));
  return Unit{};
}

Result<Workload> make_workload(Task task, const MeasureOptions& options) {
  Workload workload;
  workload.task = std::move(task);
  const ComputeDag& dag = workload.task.dag;
  Rng rng(options.seed);
  std::vector<Tensor> inputs = random_inputs(dag, rng);
  make_signed(dag, inputs);
  TRY(take_inputs(workload, std::move(inputs)));
  for (const StageId input : dag.inputs()) workload.constant.push_back(dag[input].constant);
  workload.outputs = expect_outputs(dag, workload.inputs, options.check_elements, rng);
  workload.fresh =
      Rng(static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()));
  TRY(keep_outputs(workload));
  const Target& target = workload.task.target;
  // A core's own caches do not replace the oldest line first.
  constexpr int64_t kFillings = 2;
  if (!target.is_gpu()) {
    workload.filling.assign(static_cast<size_t>(kFillings * target.l2_bytes * target.threads),
                            std::byte{1});
  }
  if (!target.is_gpu() && is_exact_on_whole_numbers(dag)) {
    workload.exact = std::make_unique<Workload>();
    workload.exact->task = workload.task;
    workload.exact->constant = workload.constant;
    TRY(take_inputs(*workload.exact, whole_numbers(dag, rng)));
    workload.exact->outputs =
        expect_exact_outputs(dag, workload.exact->inputs, options.check_elements, rng);
    TRY(keep_outputs(*workload.exact));
  }
  return workload;
}

}  // namespace pruner
