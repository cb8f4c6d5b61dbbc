// The rounds of a Loop whose number is known at run time only. One round of its body stands in the
// graph, between these nodes, and a pipeline (graph/pipeline) runs it again and again. They are
// no part of any stage: what they make is made by the pipeline.
#include "graph/ops/op.h"

namespace pruner {

using enum Fusion;

// Inputs: the trip count and the condition, of which either may be left out, then what the rounds
// begin with. Outputs: the number of the round, then what it is handed on.
static Types infer_loop_begin(const OpCall& call) {
  std::vector<TensorType> types = {{DType::kInt64, {}}};
  for (size_t i = 2; i < call.num_inputs(); ++i) types.push_back(call.type(i));
  return types;
}

// Inputs: what a round is handed on, and what it hands on to the next one. Output: what the last
// round hands on.
static Types infer_loop_last(const OpCall& call) {
  if (call.type(0) == call.type(1)) return {{call.type(0)}};
  return Error("what its body hands on is ",
               dtype_name(call.type(1).dtype),
               " ",
               print_shape(call.shape(1)),
               ", and ",
               dtype_name(call.type(0).dtype),
               " ",
               print_shape(call.shape(0)),
               " before the first round");
}

// Inputs: how many rounds there are, what each of them makes, and, where these are parts of a whole
// along axis 0, what it begins with. Output: all of it; without a whole, along a new axis.
static Types infer_loop_stack(const OpCall& call) {
  TRY_ASSIGN(const std::vector<int64_t> trips, call.constant_integers(0, "the trip count"));
  TensorType all = call.type(1);
  if (!call.has(2)) {
    all.shape.insert(all.shape.begin(), trips.at(0));
    return {{all}};
  }
  if (call.rank(1) != call.rank(2) || call.rank(1) == 0 || all.dtype != call.type(2).dtype)
    return Error("what a round appends is no part of what there is before");
  const int64_t extent = all.shape[0];
  all = call.type(2);
  all.shape[0] += trips.at(0) * extent;
  return {{all}};
}

// Inputs: the condition after a round, and the trip count, which may be left out. Output: how many
// rounds were run.
static Types infer_loop_rounds(const OpCall&) { return {{{DType::kInt64, {1}}}}; }

// clang-format off
static constexpr GraphOp kLoopOps[] = {
    GraphOp{kLoopBegin, kOpaque, 0, kAnyNumber, "loop:s", infer_loop_begin, nullptr}.with(kTakesCodes | kOwn),
    GraphOp{kLoopLast, kOpaque, 2, 2, "loop:s", infer_loop_last, nullptr}.with(kTakesCodes | kOwn),
    GraphOp{kLoopRounds, kOpaque, 1, 2, "loop:s", infer_loop_rounds, nullptr}.with(kOwn),
    GraphOp{kLoopStack, kOpaque, 2, 3, "loop:s", infer_loop_stack, nullptr}.with(kTakesCodes | kOwn),
};
// clang-format on

std::span<const GraphOp> loop_ops() { return kLoopOps; }

}  // namespace pruner
