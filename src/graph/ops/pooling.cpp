// MaxPool, AveragePool, the global pools and LRN: windows over [n, spatial..., c]. As for Conv, the
// attribute channels_last says how the node's own data lie.
#include "graph/ops/op.h"
#include "graph/ops/window.h"

namespace pruner {

using enum Fusion;

static Result<Unit> check_data(const OpCall& call) {
  if (!is_float(call.input(0).dtype)) return Error("data have to be of a floating-point type");
  if (call.rank() >= 3) return Unit{};
  return Error("data of shape ", print_shape(call.shape(0)), " need 3 dimensions or more");
}

static Result<std::vector<int64_t>> kernel_of(const OpCall& call) {
  const std::vector<int64_t> kernel = call.integers("kernel_shape");
  if (kernel.size() == spatial_shape(call).size()) return kernel;
  return Error("kernel_shape has ",
               kernel.size(),
               " elements, the input ",
               spatial_shape(call).size(),
               " spatial dimensions");
}

static Types infer_pool(const OpCall& call) {
  TRY(check_data(call));
  TRY_ASSIGN(const std::vector<int64_t> kernel, kernel_of(call));
  TRY_ASSIGN(const Window window, window_of(call, kernel));
  const bool ceil = call.integer("ceil_mode", 0) != 0;
  for (size_t d = 0; d < kernel.size(); ++d) {
    // Elements from the window's first tap to its last.
    const int64_t reach = (kernel[d] - 1) * window.dilation[d] + 1;
    if (window.pad_before[d] >= reach || window.pad_after[d] >= reach) {
      return Error("a kernel of ", reach, " would lie in the padding alone");
    }
  }
  TRY_ASSIGN(const std::vector<int64_t> out, window_outputs(call, kernel, window, ceil));
  return {{{call.input(0).dtype, data_shape(call, call.shape(0)[0], channels(call), out)}}};
}

static StageId lower_pool(const OpCall& call, StageSink& to) {
  PoolParams params;
  params.kind = call.node.op == "MaxPool" ? PoolKind::kMax : PoolKind::kAverage;
  params.kernel = call.integers("kernel_shape");
  params.window = *window_of(call, params.kernel);
  params.count_include_pad = call.integer("count_include_pad", 0) != 0;
  params.ceil = call.integer("ceil_mode", 0) != 0;
  return result_in_layout(call, to, add_pool(to.dag, data_channels_last(call, to), params));
}

static Types infer_global_pool(const OpCall& call) {
  TRY(check_data(call));
  const std::vector<int64_t> ones(spatial_shape(call).size(), 1);
  return {{{call.input(0).dtype, data_shape(call, call.shape(0)[0], channels(call), ones)}}};
}

static StageId lower_global_pool(const OpCall& call, StageSink& to) {
  std::vector<int64_t> axes;
  const int64_t first = channels_last(call) ? 1 : 2;
  for (int64_t d = 0; d < call.rank() - 2; ++d) axes.push_back(first + d);
  const ReduceKind kind = call.node.op == "GlobalMaxPool" ? ReduceKind::kMax : ReduceKind::kMean;
  return add_reduce(to.dag, to.input(call, 0), axes, true, kind);
}

static Types infer_lrn(const OpCall& call) {
  TRY(check_data(call));
  if (call.integer("size", 0) < 1) return Error("size has to be 1 or more");
  return {{call.type(0)}};
}

static StageId lower_lrn(const OpCall& call, StageSink& to) {
  const StageId result = add_lrn(to.dag,
                                 data_channels_last(call, to),
                                 call.integer("size", 1),
                                 call.number("alpha", 1e-4),
                                 call.number("beta", 0.75),
                                 call.number("bias", 1));
  return result_in_layout(call, to, result);
}

static constexpr const char* kPoolAttributes =
    "auto_pad:s ceil_mode:i channels_last:i count_include_pad:i dilations:I kernel_shape:I pads:I "
    "storage_order:i strides:I";

// clang-format off
static constexpr GraphOp kRows[] = {
    // name, fusion, fewest and most inputs, attributes, inference, lowering
    GraphOp{"AveragePool", kOutEWiseFusable, 1, 1, kPoolAttributes, infer_pool, lower_pool},
    GraphOp{"GlobalAveragePool", kOutEWiseFusable, 1, 1, "channels_last:i", infer_global_pool, lower_global_pool}.shown_as("global_avg_pool"),
    GraphOp{"GlobalMaxPool", kOutEWiseFusable, 1, 1, "channels_last:i", infer_global_pool, lower_global_pool}.shown_as("global_max_pool"),
    GraphOp{"LRN", kOpaque, 1, 1, "alpha:f beta:f bias:f channels_last:i size:i", infer_lrn, lower_lrn},
    GraphOp{"MaxPool", kOutEWiseFusable, 1, 1, kPoolAttributes, infer_pool, lower_pool},
};
// clang-format on

std::span<const GraphOp> pooling_ops() { return kRows; }

}  // namespace pruner
