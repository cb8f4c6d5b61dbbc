// Operators on the bits of two integers, by a routine: expressions have none.
#include "graph/ops/op.h"
#include "graph/routines/routines.h"

namespace pruner {

using enum Fusion;

static PrunerBits bits_of(const OpCall& call) {
  const std::string& op = call.node.op;
  if (op == "BitwiseAnd") return kBitAnd;
  if (op == "BitwiseOr") return kBitOr;
  if (op == "BitwiseXor") return kBitXor;
  if (call.text("direction", "") == "LEFT") return kShiftLeft;
  return is_signed_int(call.input(0).dtype) ? kShiftRightSigned : kShiftRight;
}

static Types infer_bitwise(const OpCall& call) {
  const DType dtype = call.input(0).dtype;
  const bool shifts = call.node.op == "BitShift";
  const bool integer = !is_float(dtype) && dtype != DType::kBool;
  if (!integer || call.input(1).dtype != dtype) {
    return Error(call.node.op,
                 " of ",
                 dtype_name(dtype),
                 " and ",
                 dtype_name(call.input(1).dtype),
                 ", expected integers of one type");
  }
  const std::string direction = call.text("direction", "");
  if (shifts && direction != "LEFT" && direction != "RIGHT")
    return Error("direction is \"", direction, "\", expected LEFT or RIGHT");
  TRY_ASSIGN(std::vector<int64_t> shape, broadcast_shapes(call.shape(0), call.shape(1)));
  return {{{dtype, std::move(shape)}}};
}

// Elements between neighbours of input i along each dimension of the output; 0 where it repeats.
static std::vector<int64_t> strides_of(const OpCall& call, size_t i) {
  const std::vector<int64_t>& in = call.shape(i);
  std::vector<int64_t> strides(call.output().shape.size(), 0);
  int64_t stride = 1;
  for (size_t d = in.size(); d-- > 0;) {
    strides[d + strides.size() - in.size()] = in[d] == 1 ? 0 : stride;
    stride *= in[d];
  }
  return strides;
}

static std::vector<int64_t> bitwise_parameters(const OpCall& call) {
  const std::vector<int64_t>& shape = call.output().shape;
  std::vector<int64_t> p = {static_cast<int64_t>(call.input(0).dtype),
                            bits_of(call),
                            element_count(shape),
                            std::ssize(shape)};
  p.insert(p.end(), shape.begin(), shape.end());
  for (const size_t i : {0, 1}) {
    const std::vector<int64_t> strides = strides_of(call, i);
    p.insert(p.end(), strides.begin(), strides.end());
  }
  return p;
}

static constexpr Routine kBitwise = {"pruner_bitwise", pruner_bitwise, 2, bitwise_parameters};

// clang-format off
static constexpr GraphOp kBitwiseOps[] = {
    // name, fusion, fewest and most inputs, attributes, inference, lowering
    GraphOp{"BitShift", kOpaque, 2, 2, "direction:s", infer_bitwise, nullptr}.run_by(kBitwise),
    GraphOp{"BitwiseAnd", kOpaque, 2, 2, "", infer_bitwise, nullptr}.from(18).run_by(kBitwise),
    GraphOp{"BitwiseOr", kOpaque, 2, 2, "", infer_bitwise, nullptr}.from(18).run_by(kBitwise),
    GraphOp{"BitwiseXor", kOpaque, 2, 2, "", infer_bitwise, nullptr}.from(18).run_by(kBitwise),
};
// clang-format on

std::span<const GraphOp> bitwise_ops() { return kBitwiseOps; }

}  // namespace pruner
