// Det and ONNX Runtime's Inverse, by routines.
#include "graph/ops/op.h"
#include "graph/routines/routines.h"

namespace pruner {

using enum Fusion;

static Result<Unit> check_matrices(const TensorType& data) {
  const size_t rank = data.shape.size();
  if (!is_float(data.dtype)) return Error("data have to be of a floating-point type");
  if (rank >= 2 && data.shape[rank - 1] == data.shape[rank - 2]) return Unit{};
  return Error("data of shape ", print_shape(data.shape), " are no square matrices");
}

static Types infer_det(const OpCall& call) {
  TensorType out = call.type(0);
  TRY(check_matrices(out));
  out.shape.resize(out.shape.size() - 2);
  return {{out}};
}

static Types infer_inverse(const OpCall& call) {
  TRY(check_matrices(call.type(0)));
  return {{call.type(0)}};
}

static std::vector<int64_t> matrix_parameters(const OpCall& call) {
  return {static_cast<int64_t>(call.input(0).dtype),
          element_count(std::span(call.shape(0)).first(call.shape(0).size() - 2)),
          call.shape(0).back()};
}

static int64_t det_workspace(const OpCall& call) {
  return call.shape(0).back() * call.shape(0).back() * static_cast<int64_t>(sizeof(double));
}

static int64_t inverse_workspace(const OpCall& call) { return 2 * det_workspace(call); }

static constexpr Routine kDet = {"pruner_det", pruner_det, 1, matrix_parameters, det_workspace};
static constexpr Routine kInverse = {
    "pruner_inverse", pruner_inverse, 1, matrix_parameters, inverse_workspace};

// clang-format off
static constexpr GraphOp kDeterminantOps[] = {
    // name, fusion, fewest and most inputs, attributes, inference, lowering
    GraphOp{"Det", kOpaque, 1, 1, "", infer_det, nullptr}.from(11).run_by(kDet),
    GraphOp{"com.microsoft::Inverse", kOpaque, 1, 1, "", infer_inverse, nullptr}.run_by(kInverse),
};
// clang-format on

std::span<const GraphOp> determinant_ops() { return kDeterminantOps; }

}  // namespace pruner
