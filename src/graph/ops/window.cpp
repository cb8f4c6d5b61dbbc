#include "graph/ops/window.h"

#include <algorithm>

#include "support/ceil_div.h"

namespace pruner {

bool channels_last(const OpCall& call) { return call.integer("channels_last", 0) != 0; }

std::vector<int64_t> spatial_shape(const OpCall& call) {
  const std::vector<int64_t>& shape = call.shape(0);
  const auto first = shape.begin() + (channels_last(call) ? 1 : 2);
  return {first, first + (call.rank() - 2)};
}

int64_t channels(const OpCall& call) {
  return channels_last(call) ? call.shape(0).back() : call.shape(0)[1];
}

bool is_convolution(const Node& node) {
  return node.op == "Conv" || node.op == "ConvTranspose" || node.op == "ConvTransposePhases";
}

bool is_depthwise(const OpCall& call) {
  const int64_t groups = call.integer("group", 1);
  return call.node.op == "Conv" && groups > 1 && groups == channels(call);
}

std::vector<int64_t> data_shape(const OpCall& call,
                                int64_t n,
                                int64_t c,
                                std::span<const int64_t> spatial) {
  std::vector<int64_t> shape = {n};
  if (!channels_last(call)) shape.push_back(c);
  shape.insert(shape.end(), spatial.begin(), spatial.end());
  if (channels_last(call)) shape.push_back(c);
  return shape;
}

// An attribute with `count` elements, each at least `least`; all `fallback` when absent.
static Result<std::vector<int64_t>> per_dimension(
    const OpCall& call, const char* name, size_t count, int64_t fallback, int64_t least) {
  std::vector<int64_t> values = call.integers(name);
  if (values.empty()) values.assign(count, fallback);
  if (values.size() != count) {
    return Error(name, " has ", values.size(), " elements, expected ", count);
  }
  for (const int64_t value : values) {
    if (value < least || value > (1 << 20)) return Error(name, " has the element ", value);
  }
  return values;
}

Result<Window> window_of(const OpCall& call, std::span<const int64_t> kernel) {
  const std::vector<int64_t> in = spatial_shape(call);
  const size_t dims = in.size();
  Window w;
  TRY_ASSIGN(w.stride, per_dimension(call, "strides", dims, 1, 1));
  TRY_ASSIGN(w.dilation, per_dimension(call, "dilations", dims, 1, 1));
  TRY_ASSIGN(const std::vector<int64_t> pads, per_dimension(call, "pads", 2 * dims, 0, 0));
  w.pad_before.assign(pads.begin(), pads.begin() + static_cast<long>(dims));
  w.pad_after.assign(pads.begin() + static_cast<long>(dims), pads.end());
  const std::string automatic = call.text("auto_pad", "NOTSET");
  if (automatic == "NOTSET") return w;
  if (automatic != "VALID" && automatic != "SAME_UPPER" && automatic != "SAME_LOWER") {
    return Error("auto_pad is \"", automatic, "\"");
  }
  for (size_t d = 0; d < dims; ++d) {
    // ONNX: SAME gives ceil(in / stride) outputs. The padding that these need is split in halves;
    // an odd element goes to the end (UPPER) or to the beginning (LOWER).
    const int64_t outputs = ceil_div(in[d], w.stride[d]);
    const int64_t reach = (outputs - 1) * w.stride[d] + (kernel[d] - 1) * w.dilation[d] + 1;
    const int64_t total = automatic == "VALID" ? 0 : std::max<int64_t>(reach - in[d], 0);
    const int64_t small = total / 2;
    w.pad_before[d] = automatic == "SAME_LOWER" ? total - small : small;
    w.pad_after[d] = total - w.pad_before[d];
  }
  return w;
}

Result<std::vector<int64_t>> window_outputs(const OpCall& call,
                                            std::span<const int64_t> kernel,
                                            const Window& window,
                                            bool ceil) {
  std::vector<int64_t> out = spatial_shape(call);
  for (size_t d = 0; d < out.size(); ++d) {
    const int64_t before = window.pad_before[d], after = window.pad_after[d];
    const int64_t reach = (kernel[d] - 1) * window.dilation[d] + 1, room = out[d] + before + after;
    if (kernel[d] < 1 || reach > room) {
      return Error("a kernel of ", reach, " does not fit the padded extent ", room);
    }
    out[d] =
        window_output(out[d], kernel[d], window.stride[d], window.dilation[d], before, after, ceil);
  }
  return out;
}

Result<TransposedWindow> transposed_window(const OpCall& call, std::span<const int64_t> kernel) {
  const std::vector<int64_t> in = spatial_shape(call);
  const size_t dims = in.size();
  const std::string automatic = call.text("auto_pad", "NOTSET");
  const bool same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
  TransposedWindow t;
  // auto_pad is resolved below: here it means the output, not the input, is in * stride.
  TRY_ASSIGN(t.window, window_of(call, kernel));
  t.output_padding = call.integers("output_padding");
  t.output = call.integers("output_shape");
  if (t.output_padding.empty()) t.output_padding.assign(dims, 0);
  if (t.output_padding.size() != dims) return Error("output_padding needs ", dims, " elements");
  if (t.output.size() == dims + 2) t.output.erase(t.output.begin(), t.output.begin() + 2);  // n, c
  if (!t.output.empty() && t.output.size() != dims) {
    return Error("output_shape needs ", dims, " elements");
  }
  if (t.output.empty() && same) {
    for (size_t d = 0; d < dims; ++d) t.output.push_back(in[d] * t.window.stride[d]);
  }
  // ONNX: an output_shape decides the pads. Their sum is what the full extent has more than it;
  // SAME_UPPER puts the larger half after the data, everything else before. What the full extent
  // has less becomes output padding.
  const bool given = !t.output.empty();
  for (size_t d = 0; d < dims; ++d) {
    const int64_t padding = t.output_padding[d], stride = t.window.stride[d];
    // ONNX: below the greater of stride and dilation.
    if (padding < 0 || (padding >= stride && padding >= t.window.dilation[d])) {
      return Error("output_padding ", padding, " is not below the stride ", stride);
    }
    const int64_t full =
        (in[d] - 1) * stride + (kernel[d] - 1) * t.window.dilation[d] + 1 + padding;
    int64_t &before = t.window.pad_before[d], &after = t.window.pad_after[d];
    if (given) {
      const int64_t total = std::max<int64_t>(full - t.output[d], 0);
      before = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
      after = total - before;
      t.output_padding[d] += std::max<int64_t>(t.output[d] - full, 0);
    } else {
      t.output.push_back(full - before - after);
    }
    if (t.output[d] < 1) return Error("the output would have an extent of ", t.output[d]);
  }
  return t;
}

TapOutputs outputs_on_data(const Window& window, size_t d, int64_t tap, int64_t in, int64_t out) {
  // Output o reads o * stride - before; before <= o * stride < before + in are data.
  const int64_t stride = window.stride[d];
  const int64_t before = window.pad_before[d] - tap * window.dilation[d];
  const int64_t begin = std::clamp<int64_t>(floor_div(before + stride - 1, stride), 0, out);
  return {begin, std::clamp(floor_div(before + in + stride - 1, stride), begin, out)};
}

StageId add_transpose(DagBuilder& dag, StageId data, std::span<const int64_t> order) {
  if (std::is_sorted(order.begin(), order.end())) return data;
  const std::vector<int64_t> in = dag.shape(data);
  std::vector<int64_t> shape;
  for (const int64_t d : order) shape.push_back(in[d]);
  const auto body = [&](std::span<const Expr> axes) {
    std::vector<Expr> indices(axes.size());
    for (size_t d = 0; d < axes.size(); ++d) indices[order[d]] = axes[d];
    return dag.at(data, indices);
  };
  return dag.compute("T_transpose", shape, body, "injective");
}

StageId data_channels_last(const OpCall& call, StageSink& to) {
  const StageId data = to.input(call, 0);
  if (channels_last(call)) return data;
  return add_transpose(to.dag, data, channels_last_order(call.rank()));
}

StageId result_in_layout(const OpCall& call, StageSink& to, StageId result) {
  if (channels_last(call)) return result;
  return add_transpose(to.dag, result, channels_first_order(call.rank()));
}

}  // namespace pruner
