// Conv and ConvTranspose. With the attribute channels_last (set by the layout pass) data are
// [n, spatial..., c], the weight is [kernel..., ci / groups, co] and the bias [1, 1..., co];
// without it they are in ONNX's order; a ConvTranspose then transposes, which is right but slow.
// Conv may have the attributes sums and factors (OpCall::products) and, of integers, pad_value,
// which stands in the padding: the zero point of the data.
#include "graph/ops/op.h"
#include "graph/ops/window.h"
#include "support/ceil_div.h"

namespace pruner {

using enum Fusion;

namespace {

// One weight, however it lies: Conv [co, ci/g, kernel...], ConvTranspose [ci, co/g, kernel...];
// channels-last, both [kernel..., ci/g, co], and a depthwise one [kernel..., c, multiplier].
struct WeightShape {
  std::vector<int64_t> kernel;
  int64_t ci, co;  // input channels of one group, output channels of all
};

}  // namespace

static WeightShape weight_shape(const OpCall& call) {
  const std::vector<int64_t>& w = call.shape(1);
  const int64_t groups = call.integer("group", 1);
  if (channels_last(call)) {
    const std::vector<int64_t> kernel(w.begin(), w.end() - 2);
    if (is_depthwise(call)) return {kernel, w[w.size() - 2] / groups, w[w.size() - 2] * w.back()};
    return {kernel, w[w.size() - 2], w.back()};
  }
  const std::vector<int64_t> kernel(w.begin() + 2, w.end());
  if (call.node.op == "Conv") return {kernel, w[1], w[0]};
  return {kernel, w[0] / groups, w[1] * groups};
}

// [co]; channels-last [1, 1..., co], as TVM has it.
static std::vector<int64_t> bias_shape(const OpCall& call, int64_t channels) {
  std::vector<int64_t> shape(channels_last(call) ? call.shape(0).size() : 1, 1);
  shape.back() = channels;
  return shape;
}

static Result<Unit> check_operands(const OpCall& call) {
  if (call.rank(0) < 3)
    return Error("data of shape ", print_shape(call.shape(0)), " need 3 dimensions or more");
  if (call.rank(1) != call.rank(0)) {
    return Error(
        "weight ", print_shape(call.shape(1)), " does not fit data ", print_shape(call.shape(0)));
  }
  const DType dtype = call.input(0).dtype;
  if (!call.sums() && dtype != call.input(1).dtype) return Error("data and weight differ in type");
  // Integer types have to be wide enough to hold sums of products.
  if (const DType sums = call.sums().value_or(dtype); !is_float(sums) && dtype_bytes(sums) < 4) {
    return Error(call.node.op, " of ", dtype_name(dtype), " is not supported");
  }
  const int64_t groups = call.integer("group", 1);
  if (groups < 1 || channels(call) % groups != 0) {
    return Error("group ", groups, " does not divide ", channels(call), " channels");
  }
  const WeightShape w = weight_shape(call);
  if (w.ci * groups != channels(call)) {
    return Error("weight ",
                 print_shape(call.shape(1)),
                 " with group ",
                 groups,
                 " expects ",
                 w.ci * groups,
                 " channels, the input has ",
                 channels(call));
  }
  if (w.co % groups != 0)
    return Error("group ", groups, " does not divide ", w.co, " output channels");
  if (call.has(2) && call.shape(2) != bias_shape(call, w.co)) {
    return Error("bias ", print_shape(call.shape(2)), " does not fit ", w.co, " output channels");
  }
  const std::vector<int64_t> declared = call.integers("kernel_shape");
  if (!declared.empty() && declared != w.kernel) {
    return Error("kernel_shape ",
                 print_shape(declared),
                 " is not that of weight ",
                 print_shape(call.shape(1)));
  }
  return Unit{};
}

static Types infer_conv(const OpCall& call) {
  TRY(check_operands(call));
  const WeightShape w = weight_shape(call);
  TRY_ASSIGN(const Window window, window_of(call, w.kernel));
  TRY_ASSIGN(const std::vector<int64_t> out, window_outputs(call, w.kernel, window, false));
  const DType dtype = call.sums().value_or(call.input(0).dtype);
  return {{{dtype, data_shape(call, call.shape(0)[0], w.co, out)}}};
}

// Adds the bias of a Conv, in either layout, if there is one.
static StageId add_bias(const OpCall& call, StageSink& to, StageId result) {
  if (!call.has(2)) return result;
  const StageId bias = to.input(call, 2);
  if (channels_last(call)) return add_add(to.dag, result, bias);
  const auto body = [&](std::span<const Expr> i) {
    return to.dag.at(result, {i.begin(), i.end()}) + to.dag.at(bias, {i[1]});
  };
  return to.dag.compute("T_add", to.dag.shape(result), body, "broadcast");
}

static StageId lower_conv(const OpCall& call, StageSink& to) {
  ConvParams params;
  params.window = *window_of(call, weight_shape(call).kernel);
  params.window.channels_first = !channels_last(call);
  params.window.pad_value = call.integer("pad_value", 0);
  params.groups = call.integer("group", 1);
  params.products = call.products();
  const StageId data = to.input(call, 0), weight = to.input(call, 1);
  const StageId result =
      is_depthwise(call) ? add_depthwise_conv(to.dag, data, weight, params.window, params.products)
                         : add_conv(to.dag, data, weight, params);
  return add_bias(call, to, result);
}

static Types infer_conv_transpose(const OpCall& call) {
  TRY(check_operands(call));
  const WeightShape w = weight_shape(call);
  TRY_ASSIGN(const TransposedWindow t, transposed_window(call, w.kernel));
  return {{{call.input(0).dtype, data_shape(call, call.shape(0)[0], w.co, t.output)}}};
}

// The weight of a ConvTranspose laid out as [kernel..., ci / groups, co].
static StageId weight_channels_last(const OpCall& call, StageSink& to) {
  const StageId weight = to.input(call, 1);
  if (channels_last(call)) return weight;
  const WeightShape w = weight_shape(call);
  const int64_t inner = w.co / call.integer("group", 1), rank = call.rank(1);
  std::vector<int64_t> shape = w.kernel;
  shape.insert(shape.end(), {w.ci, w.co});
  const auto body = [&](std::span<const Expr> axes) {
    const Expr i = axes[rank - 2], o = axes[rank - 1];
    std::vector<Expr> indices = {floor_div(o, inner) * w.ci + i, floor_mod(o, inner)};
    indices.insert(indices.end(), axes.begin(), axes.end() - 2);
    return to.dag.at(weight, indices);
  };
  return to.dag.compute("weight", shape, body, "injective");
}

static StageId lower_conv_transpose(const OpCall& call, StageSink& to) {
  const TransposedWindow t = *transposed_window(call, weight_shape(call).kernel);
  const ConvParams params{t.window, call.integer("group", 1), {}};
  const StageId data = data_channels_last(call, to), weight = weight_channels_last(call, to);
  StageId result = add_conv_transpose(to.dag, data, weight, params, t.output_padding);
  if (call.has(2)) result = add_add(to.dag, result, to.input(call, 2));
  return result_in_layout(call, to, result);
}

// ConvTransposePhases (ours): phases of a ConvTranspose that is channels-last and of dilation 1
// (add_conv_transpose_phases()). The attributes are the ConvTranspose's, with the pads that
// auto_pad implies, and first_phases. Each phase has ceil(output / stride) outputs, so there may be
// more of them than the ConvTranspose has.
static TransposedPhases phases_of(const OpCall& call) {
  const TransposedWindow t = *transposed_window(call, call.integers("kernel_shape"));
  TransposedPhases phases{t.window.stride, t.window.pad_before, call.integers("first_phases"), {}};
  for (size_t d = 0; d < t.output.size(); ++d)
    phases.outputs.push_back(ceil_div(t.output[d], phases.stride[d]));
  return phases;
}

static Types infer_phases(const OpCall& call) {
  const auto rank = static_cast<size_t>(call.rank(0));
  const std::vector<int64_t>& weight = call.shape(1);
  const std::vector<int64_t> kernel = call.integers("kernel_shape");
  const int64_t groups = call.integer("group", 1);
  if (rank < 3 || !channels_last(call) || weight.size() != 2 * rank - 2 ||
      kernel.size() != rank - 2 || call.integers("first_phases").size() != rank - 2)
    return Error("data, weight, kernel and phases differ in rank");
  if (groups < 1 || weight[2 * rank - 4] * groups != channels(call) || weight.back() % groups != 0)
    return Error("weight ", print_shape(weight), " does not fit ", channels(call), " channels");
  const DType dtype = call.input(0).dtype;
  if (!is_float(dtype) || call.input(1).dtype != dtype) return Error("operands are no floats");
  TRY(transposed_window(call, kernel));
  const TransposedPhases phases = phases_of(call);
  for (size_t d = 0; d + 2 < rank; ++d) {
    if (phases.first[d] < 0 || phases.first[d] + weight[d] > phases.stride[d])
      return Error("phases ", phases.first[d], " and on are not below ", phases.stride[d]);
  }
  std::vector<int64_t> bias(weight.size(), 1);
  bias.back() = weight.back();
  if (call.has(2) && call.shape(2) != bias)
    return Error("bias ", print_shape(call.shape(2)), " does not fit weight ", print_shape(weight));
  std::vector<int64_t> shape = {call.shape(0)[0]};
  for (size_t d = 0; d < phases.outputs.size(); ++d)
    shape.insert(shape.end(), {phases.outputs[d], call.shape(1)[d]});
  shape.push_back(call.shape(1).back());
  return {{{call.input(0).dtype, std::move(shape)}}};
}

static StageId lower_phases(const OpCall& call, StageSink& to) {
  const StageId data = to.input(call, 0), weight = to.input(call, 1);
  const StageId result =
      add_conv_transpose_phases(to.dag, data, weight, phases_of(call), call.integer("group", 1));
  return call.has(2) ? add_add(to.dag, result, to.input(call, 2)) : result;
}

// clang-format off
static constexpr GraphOp kConvolutionOps[] = {
    // name, fusion, fewest and most inputs, attributes, inference, lowering
    GraphOp{"Conv", kOutEWiseFusable, 2, 3, "auto_pad:s channels_last:i dilations:I factors:s group:i kernel_shape:I pad_value:i pads:I strides:I sums:s", infer_conv, lower_conv}.with(kTakesDataByTile),
    GraphOp{"ConvTranspose", kOutEWiseFusable, 2, 3, "auto_pad:s channels_last:i dilations:I group:i kernel_shape:I output_padding:I output_shape:I pads:I strides:I", infer_conv_transpose, lower_conv_transpose},
    GraphOp{"ConvTransposePhases", kOutEWiseFusable, 2, 3, "channels_last:i first_phases:I group:i kernel_shape:I output_padding:I pads:I strides:I", infer_phases, lower_phases}.with(kOwn),
};
// clang-format on

std::span<const GraphOp> convolution_ops() { return kConvolutionOps; }

}  // namespace pruner
