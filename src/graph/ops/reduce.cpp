// Reductions over axes, softmax and the normalisations.
#include <algorithm>
#include <numeric>

#include "graph/ops/op.h"
#include "tensor/operator_dags.h"

namespace pruner {

using enum Fusion;

// ONNX: no axes means all, or none with noop_with_empty_axes.
static Result<std::vector<int64_t>> reduced_axes(const OpCall& call) {
  std::vector<int64_t> axes;
  if (call.has(1)) {
    TRY_ASSIGN(axes, call.constant_integers(1, "axes"));
  }
  if (axes.empty() && call.integer("noop_with_empty_axes", 0) == 0) {
    axes.resize(call.shape(0).size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  return normal_axes(axes, call.rank());
}

static std::vector<int64_t> reduced_shape(const std::vector<int64_t>& in,
                                          std::span<const int64_t> axes,
                                          bool keep) {
  std::vector<int64_t> out;
  for (size_t d = 0; d < in.size(); ++d) {
    const bool reduced = std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) != axes.end();
    if (!reduced) out.push_back(in[d]);
    if (reduced && keep) out.push_back(1);
  }
  return out;
}

static Types infer_reduce(const OpCall& call) {
  const std::string& op = call.node.op;
  const DType dtype = call.input(0).dtype;
  const bool real = op == "ReduceMean" || op == "ReduceL2" || op == "ReduceLogSum";
  const bool ordered = op == "ReduceMax" || op == "ReduceMin";
  if ((dtype == DType::kBool && !ordered) || (real && !is_float(dtype))) {
    return Error(op, " of ", dtype_name(dtype));
  }
  TRY_ASSIGN(const std::vector<int64_t> axes, reduced_axes(call));
  const bool keep = call.integer("keepdims", 1) != 0;
  return {{{dtype, reduced_shape(call.shape(0), axes, keep)}}};
}

static StageId lower_reduce(const OpCall& call, StageSink& to) {
  const std::vector<int64_t> axes = *reduced_axes(call);
  const std::string& op = call.node.op;
  const auto map = [&](StageId stage, const char* name, Expr (*fn)(const Expr&)) {
    return add_elementwise(
        to.dag, name, {{stage}}, [&](std::span<const Expr> x) { return fn(x[0]); });
  };
  StageId data = to.input(call, 0);
  const bool selects = op == "ReduceMax" || op == "ReduceMin";
  if (!selects) data = add_cast(to.dag, data, sum_type(call.input(0).dtype));
  if (op == "ReduceL2" || op == "ReduceSumSquare") {
    data = map(data, "T_multiply", [](const Expr& x) { return x * x; });
  } else if (op == "ReduceL1") {
    data = map(data, "T_abs", [](const Expr& x) { return pruner::call(Intrinsic::kAbs, {x}); });
  }
  const ReduceKind kind = op == "ReduceMean"   ? ReduceKind::kMean
                          : op == "ReduceMax"  ? ReduceKind::kMax
                          : op == "ReduceMin"  ? ReduceKind::kMin
                          : op == "ReduceProd" ? ReduceKind::kProd
                                               : ReduceKind::kSum;
  const bool keep = call.integer("keepdims", 1) != 0;
  if (!axes.empty()) data = add_reduce(to.dag, data, axes, keep, kind);
  if (op == "ReduceL2") {
    data = map(data, "T_sqrt", [](const Expr& x) { return pruner::call(Intrinsic::kSqrt, {x}); });
  } else if (op == "ReduceLogSum") {
    data = map(data, "T_log", [](const Expr& x) { return pruner::call(Intrinsic::kLog, {x}); });
  } else if (axes.empty()) {
    data = map(data, "T_identity", [](const Expr& x) { return x; });
  }
  return add_cast(to.dag, data, call.input(0).dtype);
}

static Types infer_arg_reduce(const OpCall& call) {
  TRY_ASSIGN(const int64_t axis, call.axis("axis", 0, call.rank()));
  const bool keep = call.integer("keepdims", 1) != 0;
  return {{{DType::kInt64, reduced_shape(call.shape(0), {{axis}}, keep)}}};
}

static StageId lower_arg_reduce(const OpCall& call, StageSink& to) {
  return add_arg_reduce(to.dag,
                        to.input(call, 0),
                        *call.axis("axis", 0, call.rank()),
                        call.integer("keepdims", 1) != 0,
                        call.node.op == "ArgMax",
                        call.integer("select_last_index", 0) != 0);
}

static Types infer_softmax(const OpCall& call) {
  if (!is_float(call.input(0).dtype)) return Error("data have to be of a floating-point type");
  TRY(call.axis("axis", -1, call.rank()));
  return {{call.type(0)}};
}

static StageId lower_softmax(const OpCall& call, StageSink& to) {
  const int64_t axis = *call.axis("axis", -1, call.rank());
  return add_softmax(to.dag, to.input(call, 0), axis, call.node.op == "LogSoftmax");
}

// Scale and shift have to broadcast to the data and not beyond.
static Result<Unit> check_extents(const OpCall& call, size_t i, const char* what) {
  TRY_ASSIGN(const std::vector<int64_t> both, broadcast_shapes(call.shape(0), call.shape(i)));
  if (both == call.shape(0)) return Unit{};
  return Error(
      what, " ", print_shape(call.shape(i)), " does not fit data ", print_shape(call.shape(0)));
}

static Result<Unit> check_operand(const OpCall& call, size_t i, const char* what) {
  if (!call.has(i)) return Unit{};
  if (call.input(i).dtype != call.input(0).dtype) {
    return Error(what, " and data differ in type");
  }
  return check_extents(call, i, what);
}

static Types infer_layernorm(const OpCall& call) {
  if (!is_float(call.input(0).dtype)) return Error("data have to be of a floating-point type");
  TRY(call.axis("axis", -1, call.rank()));
  TRY(check_operand(call, 1, "scale"));
  TRY(check_operand(call, 2, "bias"));
  return {{call.type(0)}};
}

static StageId lower_layernorm(const OpCall& call, StageSink& to) {
  const StageId data = to.input(call, 0), scale = to.input(call, 1);
  const StageId shift = call.has(2) ? to.input(call, 2) : StageId{};
  const int64_t axis = *call.axis("axis", -1, call.rank());
  return add_layernorm(to.dag, data, axis, scale, shift, call.number("epsilon", 1e-5));
}

// The result is of the scale's type, which may be another than the data's.
static Types infer_rms_norm(const OpCall& call) {
  if (!is_float(call.input(0).dtype) || !is_float(call.input(1).dtype))
    return Error("data and scale have to be of floating-point types");
  TRY(call.axis("axis", -1, call.rank()));
  TRY(check_extents(call, 1, "scale"));
  return {{{call.input(1).dtype, call.shape(0)}}};
}

static StageId lower_rms_norm(const OpCall& call, StageSink& to) {
  const StageId data = to.input(call, 0), scale = to.input(call, 1);
  const int64_t axis = *call.axis("axis", -1, call.rank());
  return add_rms_norm(to.dag, data, axis, scale, call.number("epsilon", 1e-5));
}

// The per-channel operands of BatchNormalization and InstanceNormalization.
static Result<Unit> check_channel_operands(const OpCall& call) {
  if (call.rank() < 2)
    return Error("data of shape ", print_shape(call.shape(0)), " have no channels");
  if (!is_float(call.input(0).dtype)) return Error("data have to be of a floating-point type");
  for (size_t i = 1; i < call.num_inputs(); ++i) {
    if (call.input(i).dtype != call.input(0).dtype) return Error("inputs differ in type");
    if (call.rank(i) == 1 && call.shape(i)[0] == call.shape(0)[1]) continue;
    return Error("input ",
                 i,
                 " of shape ",
                 print_shape(call.shape(i)),
                 " does not fit ",
                 call.shape(0)[1],
                 " channels");
  }
  return Unit{};
}

static Types infer_channel_norm(const OpCall& call) {
  TRY(check_channel_operands(call));
  if (call.integer("training_mode", 0) != 0) return Error("training_mode is not supported");
  return {{call.type(0)}};
}

// operand[channel] for a point of data [n, c, spatial...].
static Expr channel_value(StageSink& to, StageId operand, std::span<const Expr> axes) {
  return to.dag.at(operand, {axes[1]});
}

// (x - mean) / sqrt(variance + epsilon) * scale + bias, by channel.
static StageId lower_batch_norm(const OpCall& call, StageSink& to) {
  const StageId x = to.input(call, 0), scale = to.input(call, 1), bias = to.input(call, 2);
  const StageId mean = to.input(call, 3), variance = to.input(call, 4);
  const double epsilon = call.number("epsilon", 1e-5);
  const auto body = [&](std::span<const Expr> axes) {
    const Expr value = to.dag.at(x, {axes.begin(), axes.end()});
    const Expr deviation = pruner::call(
        Intrinsic::kSqrt, {channel_value(to, variance, axes) + float_imm(epsilon, value->dtype)});
    return (value - channel_value(to, mean, axes)) / deviation * channel_value(to, scale, axes) +
           channel_value(to, bias, axes);
  };
  return to.dag.compute("T_batch_norm", call.shape(0), body, "broadcast");
}

// Mean and variance over the spatial dimensions of each image and channel.
static StageId lower_instance_norm(const OpCall& call, StageSink& to) {
  std::vector<int64_t> axes(call.shape(0).size() - 2);
  std::iota(axes.begin(), axes.end(), 2);
  const StageId data = to.input(call, 0), scale = to.input(call, 1), bias = to.input(call, 2);
  const StageId unit = add_normalize(to.dag, data, axes, call.number("epsilon", 1e-5));
  const auto body = [&](std::span<const Expr> at) {
    return to.dag.at(unit, {at.begin(), at.end()}) * channel_value(to, scale, at) +
           channel_value(to, bias, at);
  };
  return to.dag.compute("T_instance_norm", call.shape(0), body, "broadcast");
}

static constexpr const char* kReduceAttributes = "keepdims:i noop_with_empty_axes:i";

// clang-format off
static constexpr GraphOp kReduceOps[] = {
    // name, fusion, fewest and most inputs, attributes, inference, lowering
    GraphOp{"ArgMax", kReduce, 1, 1, "axis:i keepdims:i select_last_index:i", infer_arg_reduce, lower_arg_reduce},
    GraphOp{"ArgMin", kReduce, 1, 1, "axis:i keepdims:i select_last_index:i", infer_arg_reduce, lower_arg_reduce},
    GraphOp{"BatchNormalization", kBroadcast, 5, 5, "epsilon:f training_mode:i", infer_channel_norm, lower_batch_norm},
    GraphOp{"InstanceNormalization", kOpaque, 3, 3, "epsilon:f", infer_channel_norm, lower_instance_norm}.shown_as("instance_norm"),
    GraphOp{"LayerNormalization", kOpaque, 2, 3, "axis:i epsilon:f", infer_layernorm, lower_layernorm}.from(17).shown_as("layernorm"),
    GraphOp{"LogSoftmax", kOpaque, 1, 1, "axis:i", infer_softmax, lower_softmax}.shown_as("log_softmax"),
    GraphOp{"RMSNormalization", kOpaque, 2, 2, "axis:i epsilon:f", infer_rms_norm, lower_rms_norm}.from(23).shown_as("rms_norm"),
    GraphOp{"ReduceL1", kReduce, 1, 2, kReduceAttributes, infer_reduce, lower_reduce}.moved("axes:1"),
    GraphOp{"ReduceL2", kReduce, 1, 2, kReduceAttributes, infer_reduce, lower_reduce}.moved("axes:1"),
    GraphOp{"ReduceLogSum", kReduce, 1, 2, kReduceAttributes, infer_reduce, lower_reduce}.moved("axes:1"),
    GraphOp{"ReduceMax", kReduce, 1, 2, kReduceAttributes, infer_reduce, lower_reduce}.moved("axes:1"),
    GraphOp{"ReduceMean", kReduce, 1, 2, kReduceAttributes, infer_reduce, lower_reduce}.shown_as("mean").moved("axes:1"),
    GraphOp{"ReduceMin", kReduce, 1, 2, kReduceAttributes, infer_reduce, lower_reduce}.moved("axes:1"),
    GraphOp{"ReduceProd", kReduce, 1, 2, kReduceAttributes, infer_reduce, lower_reduce}.moved("axes:1"),
    GraphOp{"ReduceSum", kReduce, 1, 2, kReduceAttributes, infer_reduce, lower_reduce}.shown_as("sum").moved("axes:1"),
    GraphOp{"ReduceSumSquare", kReduce, 1, 2, kReduceAttributes, infer_reduce, lower_reduce}.moved("axes:1"),
    GraphOp{"Softmax", kOpaque, 1, 1, "axis:i", infer_softmax, lower_softmax},
};
// clang-format on

std::span<const GraphOp> reduce_ops() { return kReduceOps; }

}  // namespace pruner
