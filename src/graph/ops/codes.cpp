// DequantizeBlocks and CodedMatMul, of ours: matrices of whole numbers with a scale, and where it
// is there a zero, for each block of elements along one dimension.
#include "graph/ops/op.h"
#include "support/ceil_div.h"
#include "tensor/operator_dags.h"

namespace pruner {

// Returns `shape` with the dimension `axis` counted in blocks.
static std::vector<int64_t> in_blocks(std::vector<int64_t> shape, int64_t axis, int64_t block) {
  int64_t& extent = shape[static_cast<size_t>(axis)];
  extent = ceil_div(extent, block);
  return shape;
}

static Result<Unit> check_steps(const OpCall& call,
                                size_t scale,
                                const std::vector<int64_t>& expected) {
  for (size_t i = scale; i < scale + 2; ++i) {
    if (!call.has(i) || call.shape(i) == expected) continue;
    return Error(i == scale ? "the scale" : "the zero point",
                 " is ",
                 print_shape(call.shape(i)),
                 ", expected ",
                 print_shape(expected));
  }
  if (call.input(scale).dtype == DType::kFloat32) return Unit{};
  return Error("the scale is ", dtype_name(call.input(scale).dtype), ", expected float32");
}

static Types infer_dequantize_blocks(const OpCall& call) {
  TRY_ASSIGN(const int64_t axis, call.axis("axis", 0, call.rank()));
  const int64_t block = call.integer("block_size", 0);
  if (block < 1) return Error("block_size is ", block, ", expected 1 or more");
  TRY(check_steps(call, 1, in_blocks(call.shape(0), axis, block)));
  return {{{DType::kFloat32, call.shape(0)}}};
}

static StageId lower_dequantize_blocks(const OpCall& call, StageSink& to) {
  const auto axis = static_cast<size_t>(*call.axis("axis", 0, call.rank()));
  const int64_t block = call.integer("block_size", 0);
  const StageId codes = to.input(call, 0), scales = to.input(call, 1);
  const StageId zeros = call.has(2) ? to.input(call, 2) : StageId{};
  return to.dag.compute(
      "T_dequantize_blocks",
      call.shape(0),
      [&](std::span<const Expr> axes) {
        const std::vector<Expr> index(axes.begin(), axes.end());
        std::vector<Expr> place = index;
        place[axis] = floor_div(place[axis], Expr(block));
        Expr real = cast(DType::kFloat32, to.dag.at(codes, index));
        if (zeros.valid()) real = real - cast(DType::kFloat32, to.dag.at(zeros, place));
        return real * to.dag.at(scales, place);
      },
      "broadcast");
}

// Data, int8 codes [k, n] or two in a byte [k / 2, n], scales [k / block_size, n], zeros of that
// shape (else all are `zero`).
static Types infer_coded_matmul(const OpCall& call) {
  const int64_t bits = call.integer("bits", 8), block = call.integer("block_size", 0);
  if (bits != 8 && bits != 4) return Error("bits is ", bits, ", expected 8 or 4");
  if (call.rank(0) < 2 || call.rank(1) != 2 || call.input(0).dtype != DType::kFloat32 ||
      call.input(1).dtype != DType::kInt8)
    return Error("operands ",
                 print_shape(call.shape(0)),
                 " and ",
                 print_shape(call.shape(1)),
                 " have to be matrices of float32 and int8");
  std::vector<int64_t> out = call.shape(0);
  const int64_t k = out.back(), n = call.shape(1)[1];
  if (call.shape(1)[0] * 8 != k * bits || block < 1 || k % block != 0 || block * bits % 8 != 0)
    return Error(call.shape(1)[0], " rows of codes in blocks of ", block, " do not fit ", k);
  TRY(check_steps(call, 2, {k / block, n}));
  out.back() = n;
  return {{{DType::kFloat32, std::move(out)}}};
}

static StageId lower_coded_matmul(const OpCall& call, StageSink& to) {
  const StageId data = to.input(call, 0);
  CodedMatrix matrix{.codes = to.input(call, 1), .scales = to.input(call, 2)};
  if (call.has(3)) matrix.zeros = to.input(call, 3);
  matrix.bits = static_cast<int>(call.integer("bits", 8));
  matrix.block = call.integer("block_size", 0);
  matrix.zero = call.integer("zero", 0);
  return add_coded_matmul(to.dag, data, matrix);
}

// clang-format off
static constexpr GraphOp kCodesOps[] = {
    // name, fusion, fewest and most inputs, attributes, inference, lowering
    GraphOp{"CodedMatMul", Fusion::kOutEWiseFusable, 3, 4, "bits:i block_size:i zero:i", infer_coded_matmul, lower_coded_matmul}.with(kTakesDataByTile | kOwn),
    GraphOp{"DequantizeBlocks", Fusion::kBroadcast, 2, 3, "axis:i block_size:i", infer_dequantize_blocks, lower_dequantize_blocks}.with(kTakesCodes | kOwn),
};
// clang-format on

std::span<const GraphOp> codes_ops() { return kCodesOps; }

}  // namespace pruner
