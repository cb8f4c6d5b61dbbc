// Operators that put elements in order, by routines.
#include <algorithm>

#include "graph/ops/op.h"
#include "graph/routines/routines.h"

namespace pruner {

using enum Fusion;

static Types infer_top_k(const OpCall& call) {
  TRY_ASSIGN(const int64_t axis, call.axis("axis", -1, call.rank()));
  TRY_ASSIGN(const std::vector<int64_t> k, call.constant_integers(1, "k"));
  const int64_t extent = call.shape(0)[axis];
  if (k.size() != 1) return Error("k has ", k.size(), " elements, expected 1");
  if (k[0] < 0 || k[0] > extent) return Error("k is ", k[0], " of an extent of ", extent);
  TensorType values = call.type(0);
  values.shape[axis] = k[0];
  return {{values, {DType::kInt64, values.shape}}};
}

// The result is sorted whether asked for or not.
static std::vector<int64_t> top_k_parameters(const OpCall& call) {
  const std::span<const int64_t> shape = call.shape(0);
  const auto axis = static_cast<size_t>(*call.axis("axis", -1, call.rank()));
  const int64_t outer = element_count(shape.first(axis));
  const int64_t inner = element_count(shape.subspan(axis + 1));
  const int64_t parts = std::clamp<int64_t>(outer * inner, 1, 32);
  return {static_cast<int64_t>(call.input(0).dtype),
          outer,
          shape[axis],
          inner,
          call.output().shape[axis],
          call.integer("largest", 1) != 0,
          call.output_index() == 1,
          parts};
}

static int64_t top_k_workspace(const OpCall& call) {
  const std::vector<int64_t> p = top_k_parameters(call);
  const int64_t k = p[4], parts = p.back();
  return k * parts * static_cast<int64_t>(sizeof(PrunerRanked));
}

static constexpr Routine kTopK = {
    "pruner_top_k", pruner_top_k, 1, top_k_parameters, top_k_workspace};

// clang-format off
static constexpr GraphOp kRows[] = {
    // name, fusion, fewest and most inputs, attributes, inference, lowering
    GraphOp{"TopK", kOpaque, 2, 2, "axis:i largest:i sorted:i", infer_top_k, nullptr}.moved("k:1").run_by(kTopK),
};
// clang-format on

std::span<const GraphOp> sorting_ops() { return kRows; }

}  // namespace pruner
