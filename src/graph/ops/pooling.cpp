// MaxPool, AveragePool, the global pools and LRN: windows over [n, spatial..., c]. As for Conv, the
// attribute channels_last says how the node's own data lie.
#include "graph/ops/op.h"
#include "graph/ops/window.h"

namespace pruner {

using enum Fusion;

static Result<Unit> check_data(const OpCall& call) {
  const DType dtype = call.input(0).dtype;
  const bool ordered = call.node.op == "MaxPool" || call.node.op == "GlobalMaxPool";
  if (!is_float(dtype) && (!ordered || dtype == DType::kBool))
    return Error(call.node.op, " of ", dtype_name(dtype), " is not supported");
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
  const std::vector<int64_t> shape = data_shape(call, call.shape(0)[0], channels(call), out);
  std::vector<TensorType> types = {{call.input(0).dtype, shape}};
  if (call.node.op == "MaxPool") types.push_back({DType::kInt64, shape});  // places of the maxima
  return types;
}

static PoolParams pool_params(const OpCall& call) {
  PoolParams params;
  params.kernel = call.integers("kernel_shape");
  params.window = *window_of(call, params.kernel);
  params.count_include_pad = call.integer("count_include_pad", 0) != 0;
  params.ceil = call.integer("ceil_mode", 0) != 0;
  const auto pads = [](const std::vector<int64_t>& of) {
    return std::ranges::any_of(of, [](int64_t n) { return n > 0; });
  };
  const Window& window = params.window;
  params.keeps_padding =
      call.graph.keeps_all() && (params.ceil || pads(window.pad_before) || pads(window.pad_after));
  return params;
}

static StageId lower_pool(const OpCall& call, StageSink& to) {
  PoolParams params = pool_params(call);
  params.kind = call.node.op == "MaxPool" ? PoolKind::kMax : PoolKind::kAverage;
  params.window.channels_first = !channels_last(call);
  return add_pool(to.dag, to.input(call, 0), params);
}

namespace {

// The places of a MaxPool's results among the elements of its input, which ONNX counts over all
// images and channels. Data are [n, spatial..., c].
class MaxPlaces {
 public:
  MaxPlaces(const OpCall& call, DagBuilder& dag, StageId data)
      : call_(call), dag_(dag), data_(data), params_(pool_params(call)), in_(dag.shape(data)) {}

  StageId add() {
    const StageId largest = add_pool(dag_, data_, params_);
    const std::vector<int64_t> shape = dag_.shape(largest);
    // The first tap of the window that holds the largest element.
    const auto tap = [&](Axes axes, Axes taps) {
      Expr number = 0, inside = int_imm(1, DType::kBool);
      std::vector<Expr> at(axes.begin(), axes.end());
      for (size_t d = 0; d < taps.size(); ++d) {
        number = number * params_.kernel[d] + taps[d];
        at[d + 1] = place(d, axes[d + 1], taps[d]);
        inside = inside && at[d + 1] >= 0 && at[d + 1] < in_[d + 1];
      }
      const Expr equal =
          binary(BinaryOp::kEq, dag_.at(data_, at), dag_.at(largest, {axes.begin(), axes.end()}));
      return select(inside, select(equal, number, last_tap()), last_tap());
    };
    const StageId first =
        dag_.reduce("T_max_tap", shape, params_.kernel, Combiner::kMin, tap, "comm_reduce_idx");
    return dag_.compute(
        "T_max_place", shape, [&](Axes axes) { return index(axes, first); }, "injective");
  }

 private:
  using Axes = std::span<const Expr>;

  Expr last_tap() const { return element_count(params_.kernel) - 1; }
  Expr place(size_t d, const Expr& o, const Expr& tap) const {
    const Window& w = params_.window;
    return o * w.stride[d] + tap * w.dilation[d] - w.pad_before[d];
  }

  Expr index(Axes axes, StageId first) const {
    const size_t dims = params_.kernel.size();
    Expr tap = dag_.at(first, {axes.begin(), axes.end()});
    std::vector<Expr> at(dims);
    for (size_t d = dims; d-- > 0;) {
      at[d] = place(d, axes[d + 1], floor_mod(tap, params_.kernel[d]));
      tap = floor_div(tap, params_.kernel[d]);
    }
    // storage_order 1: the first spatial dimension is the one that is dense.
    const bool reversed = call_.integer("storage_order", 0) != 0;
    Expr number = axes[0] * in_.back() + axes.back();
    for (size_t i = 0; i < dims; ++i) {
      const size_t d = reversed ? dims - 1 - i : i;
      number = number * in_[d + 1] + at[d];
    }
    return number;
  }

  const OpCall& call_;
  DagBuilder& dag_;
  StageId data_;
  PoolParams params_;
  std::vector<int64_t> in_;
};

}  // namespace

static StageId lower_max_pool(const OpCall& call, StageSink& to) {
  if (call.output_index() == 0) return lower_pool(call, to);
  const StageId data = data_channels_last(call, to);
  return result_in_layout(call, to, MaxPlaces(call, to.dag, data).add());
}

static Types infer_lp_pool(const OpCall& call) {
  if (call.integer("p", 2) < 1) return Error("p is ", call.integer("p", 2), ", expected 1 or more");
  return infer_pool(call);
}

// The p-th root of the sum of p-th powers.
static StageId lower_lp_pool(const OpCall& call, StageSink& to) {
  const auto p = static_cast<double>(call.integer("p", 2));
  const DType dtype = sum_type(call.input(0).dtype);
  const StageId data = add_cast(to.dag, data_channels_last(call, to), dtype);
  const StageId powers = add_elementwise(to.dag, "T_power", {{data}}, [&](auto x) {
    const Expr size = pruner::call(Intrinsic::kAbs, {x[0]});
    if (p == 1) return size;
    return p == 2 ? x[0] * x[0] : pruner::call(Intrinsic::kPow, {size, float_imm(p, dtype)});
  });
  PoolParams params = pool_params(call);
  params.kind = PoolKind::kSum;
  const StageId sums = add_pool(to.dag, powers, params);
  const StageId roots = add_elementwise(to.dag, "T_root", {{sums}}, [&](auto x) {
    if (p == 1) return x[0];
    if (p == 2) return pruner::call(Intrinsic::kSqrt, {x[0]});
    return pruner::call(Intrinsic::kPow, {x[0], float_imm(1 / p, dtype)});
  });
  return result_in_layout(call, to, add_cast(to.dag, roots, call.input(0).dtype));
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

static constexpr const char* kLpPoolAttributes =
    "auto_pad:s ceil_mode:i dilations:I kernel_shape:I p:i pads:I strides:I";

// clang-format off
static constexpr GraphOp kPoolingOps[] = {
    // name, fusion, fewest and most inputs, attributes, inference, lowering
    GraphOp{"AveragePool", kOutEWiseFusable, 1, 1, kPoolAttributes, infer_pool, lower_pool},
    GraphOp{"GlobalAveragePool", kOutEWiseFusable, 1, 1, "channels_last:i", infer_global_pool, lower_global_pool}.shown_as("global_avg_pool"),
    GraphOp{"GlobalMaxPool", kOutEWiseFusable, 1, 1, "channels_last:i", infer_global_pool, lower_global_pool}.shown_as("global_max_pool"),
    GraphOp{"LRN", kOpaque, 1, 1, "alpha:f beta:f bias:f channels_last:i size:i", infer_lrn, lower_lrn},
    GraphOp{"LpPool", kOpaque, 1, 1, kLpPoolAttributes, infer_lp_pool, lower_lp_pool}.shown_as("lp_pool"),
    GraphOp{"MaxPool", kOutEWiseFusable, 1, 1, kPoolAttributes, infer_pool, lower_max_pool},
};
// clang-format on

std::span<const GraphOp> pooling_ops() { return kPoolingOps; }

}  // namespace pruner
