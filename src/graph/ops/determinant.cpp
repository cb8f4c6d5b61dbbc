// Det, by a routine.
#include "graph/ops/op.h"
#include "graph/routines/routines.h"

namespace pruner {

using enum Fusion;

static Types infer_det(const OpCall& call) {
  TensorType out = call.type(0);
  const size_t rank = out.shape.size();
  if (!is_float(out.dtype)) return Error("data have to be of a floating-point type");
  if (rank < 2 || out.shape[rank - 1] != out.shape[rank - 2])
    return Error("data of shape ", print_shape(out.shape), " are no square matrices");
  out.shape.resize(rank - 2);
  return {{out}};
}

static std::vector<int64_t> det_parameters(const OpCall& call) {
  return {static_cast<int64_t>(call.input(0).dtype),
          element_count(call.output().shape),
          call.shape(0).back()};
}

static int64_t det_workspace(const OpCall& call) {
  return call.shape(0).back() * call.shape(0).back() * static_cast<int64_t>(sizeof(double));
}

static constexpr Routine kDet = {"pruner_det", pruner_det, 1, det_parameters, det_workspace};

// clang-format off
static constexpr GraphOp kDeterminantOps[] = {
    // name, fusion, fewest and most inputs, attributes, inference, lowering
    GraphOp{"Det", kOpaque, 1, 1, "", infer_det, nullptr}.from(11).run_by(kDet),
};
// clang-format on

std::span<const GraphOp> determinant_ops() { return kDeterminantOps; }

}  // namespace pruner
