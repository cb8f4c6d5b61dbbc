#include <algorithm>

#include "graph/ops/op.h"
#include "support/check.h"

namespace pruner {

Tensor routine_parameters(const Routine& routine, const OpCall& call) {
  const std::vector<int64_t> values = routine.parameters(call);
  Tensor tensor(DType::kInt64, {std::ssize(values)});
  std::copy(values.begin(), values.end(), tensor.values<int64_t>().begin());
  return tensor;
}

Tensor run_routine(const OpCall& call, std::span<const Tensor> inputs) {
  const Routine& routine = *find_graph_op(call.node.op)->routine;
  const Value& output = call.output();
  Tensor parameters = routine_parameters(routine, call), out(output.dtype, output.shape);
  std::vector<void*> args;
  for (size_t i = 0; i < std::min(routine.tensors, inputs.size()); ++i) {
    // A kernel reads its inputs, whatever the type of its arguments.
    if (call.has(i)) args.push_back(const_cast<void*>(inputs[i].data()));
  }
  args.push_back(parameters.data());
  args.push_back(out.data());
  const int64_t bytes = routine.workspace_bytes == nullptr ? 0 : routine.workspace_bytes(call);
  Tensor workspace(DType::kInt8, {bytes});
  PrunerPool alone = {[](PrunerPool*, PrunerBody body, void* closure, int64_t n) {
                        if (n > 0) body(closure, 0, n);
                      },
                      1};
  routine.function(args.data(), workspace.data(), &alone);
  return out;
}

}  // namespace pruner
