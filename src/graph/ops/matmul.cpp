// Gemm and MatMul, with the attributes sums and factors (OpCall::products). MatMul has two more
// attributes of ours, transA and transB, as Gemm: the last two dimensions of an operand are
// exchanged (set by the sink_transposes pass).
#include "graph/ops/op.h"
#include "graph/ops/window.h"

namespace pruner {

using enum Fusion;

// The result's type.
static Result<DType> check_operands(const OpCall& call, int64_t rank_a, int64_t rank_b) {
  if (call.rank(0) < rank_a || call.rank(1) < rank_b) {
    return Error("operands ",
                 print_shape(call.shape(0)),
                 " and ",
                 print_shape(call.shape(1)),
                 " have too few dimensions");
  }
  const DType dtype = call.input(0).dtype;
  if (!call.sums() && dtype != call.input(1).dtype) return Error("operands differ in type");
  return call.sums().value_or(dtype);
}

static bool transposed(const OpCall& call, const char* name) { return call.integer(name, 0) != 0; }

static Error inner_mismatch(const OpCall& call, int64_t a, int64_t b) {
  return Error("inner extents ",
               a,
               " and ",
               b,
               " differ: operands are ",
               print_shape(call.shape(0)),
               " and ",
               print_shape(call.shape(1)));
}

static Types infer_gemm(const OpCall& call) {
  TRY_ASSIGN(const DType dtype, check_operands(call, 2, 2));
  if (call.rank(0) != 2 || call.rank(1) != 2) {
    return Error("operands ",
                 print_shape(call.shape(0)),
                 " and ",
                 print_shape(call.shape(1)),
                 " have to be matrices");
  }
  const size_t ta = transposed(call, "transA"), tb = transposed(call, "transB");
  const int64_t m = call.shape(0)[ta], k = call.shape(0)[1 - ta];
  const int64_t n = call.shape(1)[1 - tb];
  if (call.shape(1)[tb] != k) return inner_mismatch(call, k, call.shape(1)[tb]);
  const std::vector<int64_t> out = {m, n};
  if (call.has(2)) {
    TRY_ASSIGN(const std::vector<int64_t> both, broadcast_shapes(out, call.shape(2)));
    // The bias broadcasts to the result, never the result to the bias.
    if (both != out)
      return Error(
          "bias ", print_shape(call.shape(2)), " does not fit the result ", print_shape(out));
  }
  return {{{dtype, out}}};
}

static StageId scaled(StageSink& to, StageId stage, double factor) {
  if (factor == 1) return stage;
  const DType dtype = to.dag.stage(stage).dtype;
  return add_elementwise(to.dag, "T_multiply", {{stage}}, [&](std::span<const Expr> x) {
    return x[0] * float_imm(factor, dtype);
  });
}

// alpha * a * b + beta * c; with the second operand transposed alone it is TVM's dense.
static StageId lower_gemm(const OpCall& call, StageSink& to) {
  const bool ta = transposed(call, "transA"), tb = transposed(call, "transB");
  const StageId a = to.input(call, 0), b = to.input(call, 1);
  StageId result = !ta && tb ? add_dense(to.dag, a, b, call.products())
                             : add_matmul(to.dag, a, b, ta, tb, call.products());
  result = scaled(to, result, call.number("alpha", 1));
  if (!call.has(2)) return result;
  return add_add(to.dag, result, scaled(to, to.input(call, 2), call.number("beta", 1)));
}

// The shape of an operand as a stack of matrices: a vector is a row on the left, a column on the
// right.
static std::vector<int64_t> as_matrices(const OpCall& call, size_t i) {
  std::vector<int64_t> shape = call.shape(i);
  if (shape.size() == 1) shape.insert(i == 0 ? shape.begin() : shape.end(), 1);
  if (transposed(call, i == 0 ? "transA" : "transB"))
    std::swap(shape.back(), shape[shape.size() - 2]);
  return shape;
}

static Types infer_matmul(const OpCall& call) {
  TRY_ASSIGN(const DType dtype, check_operands(call, 1, 1));
  const std::vector<int64_t> a = as_matrices(call, 0), b = as_matrices(call, 1);
  if (a.back() != b[b.size() - 2]) return inner_mismatch(call, a.back(), b[b.size() - 2]);
  TRY_ASSIGN(std::vector<int64_t> out,
             broadcast_shapes({a.data(), a.size() - 2}, {b.data(), b.size() - 2}));
  if (call.rank(0) > 1) out.push_back(a[a.size() - 2]);
  if (call.rank(1) > 1) out.push_back(b.back());
  return {{{dtype, out}}};
}

// A vector operand as a matrix, and the result without the dimension that this added.
static StageId unsqueezed(StageSink& to, StageId stage, const std::vector<int64_t>& shape) {
  return to.dag.compute(
      "T_reshape",
      shape,
      [&](std::span<const Expr> axes) {
        return to.dag.at(stage, {shape[0] == 1 ? axes[1] : axes[0]});
      },
      "injective");
}

static StageId lower_matmul(const OpCall& call, StageSink& to) {
  StageId a = to.input(call, 0), b = to.input(call, 1);
  if (call.rank(0) == 1) a = unsqueezed(to, a, as_matrices(call, 0));
  if (call.rank(1) == 1) b = unsqueezed(to, b, {call.shape(1)[0], 1});
  const StageId result = add_matmul(
      to.dag, a, b, transposed(call, "transA"), transposed(call, "transB"), call.products());
  if (call.rank(0) > 1 && call.rank(1) > 1) return result;
  return to.dag.compute(
      "T_reshape",
      call.output().shape,
      [&](std::span<const Expr> axes) {
        std::vector<Expr> indices(axes.begin(), axes.end());
        if (call.rank(1) == 1) indices.push_back(0);
        if (call.rank(0) == 1) indices.insert(indices.end() - 1, 0);
        return to.dag.at(result, indices);
      },
      "injective");
}

// clang-format off
static constexpr GraphOp kMatmulOps[] = {
    // name, fusion, fewest and most inputs, attributes, inference, lowering
    GraphOp{"Gemm", kOutEWiseFusable, 2, 3, "alpha:f beta:f factors:s sums:s transA:i transB:i", infer_gemm, lower_gemm}.with(kTakesDataByTile),
    GraphOp{"MatMul", kOutEWiseFusable, 2, 2, "factors:s sums:s transA:i transB:i", infer_matmul, lower_matmul}.with(kTakesDataByTile),
};
// clang-format on

std::span<const GraphOp> matmul_ops() { return kMatmulOps; }

}  // namespace pruner
