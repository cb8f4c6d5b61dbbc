// Operators whose window moves over spatial dimensions: convolutions, pooling, padding.
#include <algorithm>

#include "support/check.h"
#include "tensor/operator_dags.h"

namespace pruner {

// floor((input + pads - reach) / stride) + 1, or with ceil the quotient rounded up, less a window
// that would start in the padding after the input.
int64_t window_output(int64_t input,
                      int64_t kernel,
                      int64_t stride,
                      int64_t dilation,
                      int64_t pad_before,
                      int64_t pad_after,
                      bool ceil) {
  const int64_t room = input + pad_before + pad_after - (dilation * (kernel - 1) + 1);
  int64_t output = floor_div(room + (ceil ? stride - 1 : 0), stride) + 1;
  if (ceil && (output - 1) * stride >= input + pad_before) --output;
  return output;
}

// One spatial dimension of a window, and which dimension of the data it is.
struct WindowDim {
  size_t axis;
  int64_t in, kernel, stride, dilation, before, after, out;

  int64_t reach() const { return dilation * (kernel - 1) + 1; }
  Expr at(const Expr& o, const Expr& r) const { return o * stride + r * dilation; }
};

static int64_t value_or(const std::vector<int64_t>& list, size_t d, int64_t otherwise) {
  return d < list.size() ? list[d] : otherwise;
}

static size_t channel_axis(const Window& w, size_t spatial_rank) {
  return w.channels_first ? 1 : spatial_rank + 1;
}

static std::vector<WindowDim> window_dims(const std::vector<int64_t>& data_shape,
                                          std::span<const int64_t> kernel,
                                          const Window& w,
                                          bool ceil = false) {
  CHECK(data_shape.size() == kernel.size() + 2) << "data have a batch and channels";
  std::vector<WindowDim> dims;
  for (size_t d = 0; d < kernel.size(); ++d) {
    const size_t axis = d + (w.channels_first ? 2 : 1);
    WindowDim dim{axis,
                  data_shape[axis],
                  kernel[d],
                  value_or(w.stride, d, 1),
                  value_or(w.dilation, d, 1),
                  value_or(w.pad_before, d, 0),
                  value_or(w.pad_after, d, 0),
                  0};
    dim.out =
        window_output(dim.in, dim.kernel, dim.stride, dim.dilation, dim.before, dim.after, ceil);
    dims.push_back(dim);
  }
  return dims;
}

// "nn", "yy", "xx", "ff" and then "ry", "rx", "rc", as TVM's conv2d_nhwc; "zz" before for 3-D, and
// with channels first theirs before the others.
static std::vector<std::string> conv_names(size_t rank,
                                           bool channel_reduced,
                                           bool channels_first = false) {
  static constexpr const char* kDims[] = {"z", "y", "x"};
  std::vector<std::string> names = {"nn"}, taps;
  for (size_t d = 0; d < rank; ++d) {
    const std::string dim = rank <= 3 ? kDims[3 - rank + d] : "d" + std::to_string(d);
    names.push_back(dim + dim);
    taps.push_back("r" + dim);
  }
  names.insert(channels_first ? names.begin() + 1 : names.end(), "ff");
  if (channel_reduced) taps.insert(channels_first ? taps.begin() : taps.end(), "rc");
  names.insert(names.end(), taps.begin(), taps.end());
  return names;
}

static std::string rank_text(size_t rank) { return std::to_string(rank) + "d"; }

static std::string layout_text(size_t rank, bool channels_first = false) {
  if (rank > 3) return channels_first ? "channels_first" : "channels_last";
  const std::string dims = std::string("dhw").substr(3 - rank);
  return channels_first ? "nc" + dims : "n" + dims + "c";
}

// `guarded`: all axes have bounds, also those that nothing is added to.
static StageId pad_with(DagBuilder& b,
                        StageId data,
                        std::span<const int64_t> before,
                        std::span<const int64_t> after,
                        const Expr& value,
                        std::string name,
                        bool guarded = false) {
  const std::vector<int64_t> in = b.shape(data);
  std::vector<int64_t> out = in;
  std::vector<std::string> names;
  for (size_t d = 0; d < in.size(); ++d) {
    out[d] += before[d] + after[d];
    names.push_back("i" + std::to_string(d));
  }
  const auto body = [&](std::span<const Expr> i) {
    Expr inside = int_imm(1, DType::kBool);
    std::vector<Expr> index;
    for (size_t d = 0; d < in.size(); ++d) {
      index.push_back(i[d] - before[d]);
      if (before[d] > 0 || after[d] > 0 || guarded) {
        inside = inside && i[d] >= before[d] && i[d] < before[d] + in[d];
      }
    }
    return select(inside, b.at(data, index), value);
  };
  return b.compute(std::move(name), out, body, "injective,pad", std::move(names));
}

StageId add_pad(DagBuilder& b,
                StageId data,
                std::span<const int64_t> before,
                std::span<const int64_t> after,
                double value,
                std::string name,
                bool guarded) {
  return pad_with(b,
                  data,
                  before,
                  after,
                  cast(b.stage(data).dtype, float_imm(value)),
                  std::move(name),
                  guarded);
}

// A last window that `ceil` counts may read beyond the padding that is given.
// The data with what the windows read around them; the data themselves where that is nothing.
static StageId pad_windows(DagBuilder& b,
                           StageId data,
                           std::span<const WindowDim> dims,
                           const Expr& value,
                           std::string name,
                           bool keeps_padding = false) {
  std::vector<int64_t> before(dims.size() + 2, 0), after(dims.size() + 2, 0);
  bool padded = keeps_padding;
  for (const WindowDim& dim : dims) {
    before[dim.axis] = dim.before;
    const int64_t read = (dim.out - 1) * dim.stride + dim.reach();
    const int64_t given = dim.before + dim.in + dim.after;
    // Without what no window reads, the extent follows from the number of windows alone.
    after[dim.axis] = (keeps_padding ? read : std::max(given, read)) - dim.in - dim.before;
    padded |= before[dim.axis] != 0 || after[dim.axis] != 0;
  }
  return padded ? pad_with(b, data, before, after, value, std::move(name), keeps_padding) : data;
}

static std::vector<int64_t> output_shape(int64_t n, std::span<const WindowDim> dims, int64_t c) {
  std::vector<int64_t> shape(dims.size() + 2, c);
  shape[0] = n;
  for (const WindowDim& dim : dims) shape[dim.axis] = dim.out;
  return shape;
}

// data[n, y*stride + ry*dilation, ..., channel], or with the channel before these.
static Expr window_load(const DagBuilder& b,
                        StageId data,
                        std::span<const WindowDim> dims,
                        std::span<const Expr> i,
                        std::span<const Expr> r,
                        const Expr& channel) {
  std::vector<Expr> index(i.size(), channel);
  index[0] = i[0];
  for (size_t d = 0; d < dims.size(); ++d) {
    const WindowDim& dim = dims[d];
    index[dim.axis] = dim.at(i[dim.axis], r[d]);
  }
  return b.at(data, std::move(index));
}

// The input channel that number rc of a group's channels is, for output channel `out`.
static Expr group_channel(const Expr& out, const Expr& rc, int64_t groups, int64_t co, int64_t ci) {
  if (groups == 1) return rc;
  return floor_div(out, co / groups) * (ci / groups) + rc;
}

StageId add_conv(DagBuilder& b, StageId data, StageId weight, const ConvParams& params) {
  const std::vector<int64_t> in = b.shape(data), shape = b.shape(weight);
  const size_t rank = in.size() - 2, channel = channel_axis(params.window, rank);
  const bool first = params.window.channels_first;
  const int64_t ci = in[channel], co = first ? shape[0] : shape.back();
  CHECK(shape.size() == rank + 2 && shape[first ? 1 : rank] * params.groups == ci &&
        co % params.groups == 0)
      << "a conv weight is [kernel..., ci / groups, co] or [co, ci / groups, kernel...]";
  const auto dims = window_dims(in, std::span(shape).subspan(first ? 2 : 0, rank), params.window);
  const StageId padded =
      pad_windows(b, data, dims, cast(b.stage(data).dtype, params.window.pad_value), "PaddedInput");

  const auto body = [&](std::span<const Expr> i, std::span<const Expr> r) {
    std::vector<Expr> tap(r.begin(), r.end());
    tap.insert(first ? tap.begin() : tap.end(), i[channel]);
    const Expr from =
        group_channel(i[channel], first ? r.front() : r.back(), params.groups, co, ci);
    const Expr read = window_load(b, padded, dims, i, r.subspan(first ? 1 : 0, rank), from);
    return product(read, b.at(weight, tap), params.products);
  };
  std::vector<int64_t> reduced = shape;
  reduced.erase(first ? reduced.begin() : reduced.end() - 1);
  const std::string conv = "conv" + rank_text(rank) + "_" + layout_text(rank, first);
  const StageId out = b.reduce("Conv" + rank_text(rank) + "Output",
                               output_shape(in[0], dims, co),
                               reduced,
                               Combiner::kSum,
                               body,
                               params.groups == 1 ? conv : "group_" + conv,
                               conv_names(rank, true, first));
  if (!first) b.allow_repacking(out, weight);  // lanes are along rows, which no weight has
  return params.products.sums ? out : add_cast(b, out, b.stage(data).dtype);
}

StageId add_depthwise_conv(
    DagBuilder& b, StageId data, StageId weight, const Window& window, const Products& products) {
  const std::vector<int64_t> in = b.shape(data), shape = b.shape(weight);
  const size_t rank = in.size() - 2, channel = channel_axis(window, rank);
  const bool first = window.channels_first;
  const int64_t multiplier = first ? shape[0] / in[channel] : shape.back();
  CHECK(shape.size() == rank + 2 &&
        (first ? shape[0] % in[channel] == 0 && shape[1] == 1 : shape[rank] == in[channel]))
      << "a depthwise weight is [kernel..., c, multiplier] or [c * multiplier, 1, kernel...]";
  const std::span<const int64_t> kernel = std::span(shape).subspan(first ? 2 : 0, rank);
  const auto dims = window_dims(in, kernel, window);
  const StageId padded =
      pad_windows(b, data, dims, cast(b.stage(data).dtype, window.pad_value), "PaddedInput");

  const auto body = [&](std::span<const Expr> i, std::span<const Expr> r) {
    const Expr from = floor_div(i[channel], multiplier);
    std::vector<Expr> tap(r.begin(), r.end());
    if (first) {
      tap.insert(tap.begin(), {i[channel], 0});
    } else {
      tap.insert(tap.end(), {from, floor_mod(i[channel], multiplier)});
    }
    return product(window_load(b, padded, dims, i, r, from), b.at(weight, tap), products);
  };
  const std::string conv = "conv" + rank_text(rank);
  const StageId out = b.reduce("DepthwiseC" + conv.substr(1),
                               output_shape(in[0], dims, in[channel] * multiplier),
                               {kernel.begin(), kernel.end()},
                               Combiner::kSum,
                               body,
                               "depthwise_" + conv + "_" + layout_text(rank, first),
                               conv_names(rank, false, first));
  return products.sums ? out : add_cast(b, out, b.stage(data).dtype);
}

// The data spread by the stride, zeros between and around: what a flipped kernel slides over.
static StageId spread(DagBuilder& b, StageId data, std::span<const WindowDim> dims) {
  const std::vector<int64_t> in = b.shape(data);
  std::vector<int64_t> shape = in;
  for (size_t d = 0; d < dims.size(); ++d) shape[d + 1] = dims[d].out + dims[d].reach() - 1;
  const auto body = [&](std::span<const Expr> i) {
    Expr on_data = int_imm(1, DType::kBool);
    std::vector<Expr> index(i.begin(), i.end());
    for (size_t d = 0; d < dims.size(); ++d) {
      const WindowDim& dim = dims[d];
      // So many zeros stand before the first element; then every stride-th place has one.
      const Expr at = i[d + 1] - (dim.reach() - 1 - dim.before);
      index[d + 1] = floor_div(at, dim.stride);
      on_data = on_data && at >= 0 && at < (dim.in - 1) * dim.stride + 1;
      if (dim.stride > 1) {
        on_data = on_data && binary(BinaryOp::kEq, floor_mod(at, dim.stride), 0);
      }
    }
    return select(on_data, b.at(data, index), 0);
  };
  return b.compute("DilatedInput", shape, body, "injective,dilate");
}

StageId add_conv_transpose(DagBuilder& b,
                           StageId data,
                           StageId weight,
                           const ConvParams& params,
                           std::span<const int64_t> output_padding) {
  const std::vector<int64_t> in = b.shape(data), kernel = b.shape(weight);
  const size_t rank = in.size() - 2;
  const int64_t ci = in.back(), co = kernel.back();
  CHECK(kernel.size() == rank + 2 && kernel[rank] * params.groups == ci && co % params.groups == 0)
      << "a transposed conv weight is [kernel..., ci / groups, co]";
  auto dims = window_dims(in, std::span(kernel).first(rank), params.window);
  for (size_t d = 0; d < rank; ++d) {
    dims[d].out = (dims[d].in - 1) * dims[d].stride - dims[d].before - dims[d].after +
                  dims[d].reach() + (d < output_padding.size() ? output_padding[d] : 0);
  }
  const StageId spread_data = spread(b, data, dims);

  const auto body = [&](std::span<const Expr> i, std::span<const Expr> r) {
    std::vector<Expr> index = {i[0]}, tap;
    for (size_t d = 0; d < rank; ++d) {
      index.push_back(i[d + 1] + r[d] * dims[d].dilation);
      tap.push_back(dims[d].kernel - 1 - r[d]);
    }
    index.push_back(group_channel(i.back(), r.back(), params.groups, co, ci));
    tap.push_back(r.back());
    tap.push_back(i.back());
    return product(b.at(spread_data, index), b.at(weight, tap));
  };
  const std::string conv = "conv" + rank_text(rank) + "_transpose_" + layout_text(rank);
  const StageId out = b.reduce(conv,
                               output_shape(in[0], dims, co),
                               {kernel.begin(), kernel.end() - 1},
                               Combiner::kSum,
                               body,
                               conv,
                               conv_names(rank, true));
  b.allow_repacking(out, weight);
  return add_cast(b, out, b.stage(data).dtype);
}

StageId add_conv_transpose_phases(
    DagBuilder& b, StageId data, StageId weight, const TransposedPhases& phases, int64_t groups) {
  const std::vector<int64_t> in = b.shape(data), shape = b.shape(weight);
  const size_t rank = in.size() - 2;
  const int64_t ci = in.back(), co = shape.back();
  CHECK(shape.size() == 2 * rank + 2 && shape[2 * rank] * groups == ci && co % groups == 0)
      << "a weight by phase is [phases..., taps..., ci / groups, co]";
  const std::span<const int64_t> count = std::span(shape).first(rank);
  const std::span<const int64_t> taps = std::span(shape).subspan(rank, rank);
  // Output q of phase p multiplies datum q + first_read() with the first tap.
  const auto first_read = [&](size_t d, const auto& p) {
    return floor_div(p + (phases.first[d] + phases.pad_before[d]), phases.stride[d]) -
           (taps[d] - 1);
  };
  std::vector<int64_t> before(rank + 2, 0), after(rank + 2, 0), made = {in[0]};
  for (size_t d = 0; d < rank; ++d) {
    const int64_t most = phases.outputs[d] - 1 + first_read(d, count[d] - 1) + taps[d] - 1;
    before[d + 1] = std::max<int64_t>(-first_read(d, int64_t{0}), 0);
    after[d + 1] = std::max<int64_t>(most - (in[d + 1] - 1), 0);
    made.insert(made.end(), {phases.outputs[d], count[d]});
  }
  made.push_back(co);
  const bool pads = std::ranges::any_of(before, [](int64_t n) { return n > 0; }) ||
                    std::ranges::any_of(after, [](int64_t n) { return n > 0; });
  const Expr zero = cast(b.stage(data).dtype, float_imm(0));
  const StageId padded = pads ? pad_with(b, data, before, after, zero, "PaddedInput") : data;

  const auto body = [&](std::span<const Expr> i, std::span<const Expr> r) {
    std::vector<Expr> read = {i[0]}, tap;
    for (size_t d = 0; d < rank; ++d) {
      const Expr &q = i[2 * d + 1], &p = i[2 * d + 2];
      read.push_back(q + first_read(d, p) + before[d + 1] + r[d]);
      tap.push_back(p);
    }
    read.push_back(group_channel(i.back(), r.back(), groups, co, ci));
    tap.insert(tap.end(), r.begin(), r.end());
    tap.push_back(i.back());
    return product(b.at(padded, read), b.at(weight, tap));
  };
  const std::string conv = "conv" + rank_text(rank) + "_transpose_phases";
  std::vector<int64_t> reduced(taps.begin(), taps.end());
  reduced.push_back(ci / groups);
  const StageId out = b.reduce(conv, made, reduced, Combiner::kSum, body, conv);
  b.allow_repacking(out, weight);
  return add_cast(b, out, b.stage(data).dtype);
}

// How many taps of the window at `o` lie in [low, high); a constant where that is all of them, if
// it may be one.
static Expr taps_inside(
    const WindowDim& dim, const Expr& o, int64_t low, int64_t high, bool keeps_padding) {
  const int64_t last = (dim.out - 1) * dim.stride - dim.before + dim.reach();
  if (!keeps_padding && -dim.before >= low && last <= high) return dim.kernel;
  const Expr start = o * dim.stride - dim.before;
  // The least taps r with start + r * dilation >= low and >= high.
  const Expr first = max(floor_div(low + dim.dilation - 1 - start, dim.dilation), 0);
  const Expr end = min(floor_div(high + dim.dilation - 1 - start, dim.dilation), dim.kernel);
  return end - first;
}

StageId add_pool(DagBuilder& b, StageId data, const PoolParams& params) {
  const std::vector<int64_t> in = b.shape(data);
  const auto dims = window_dims(in, params.kernel, params.window, params.ceil);
  const bool is_max = params.kind == PoolKind::kMax;
  const DType dtype = b.stage(data).dtype;
  const Combiner combiner = is_max ? Combiner::kMax : Combiner::kSum;
  const Expr identity = combiner_identity(combiner, dtype);
  const StageId padded = pad_windows(b, data, dims, identity, "pad_temp", params.keeps_padding);

  std::vector<std::string> names = {"ax0"};
  for (size_t d = 0; d <= dims.size(); ++d) names.push_back("ax" + std::to_string(d + 1));
  for (size_t d = 0; d < dims.size(); ++d) {
    names.push_back(dims.size() == 2 ? (d == 0 ? "dh" : "dw") : "d" + std::to_string(d));
  }
  const size_t channel = channel_axis(params.window, dims.size());
  const std::vector<int64_t> shape = output_shape(in[0], dims, in[channel]);
  const StageId pooled = b.reduce(
      "tensor",
      shape,
      params.kernel,
      combiner,
      [&](auto i, auto r) {
        const Expr value = window_load(b, padded, dims, i, r, i[channel]);
        return is_max ? value : cast(sum_type(dtype), value);
      },
      is_max ? "pool_max" : "pool_sum",
      names);
  if (params.kind != PoolKind::kAverage) return pooled;

  const auto average = [&](std::span<const Expr> i) {
    Expr taps = 1;
    for (const WindowDim& dim : dims) {
      const bool all = params.count_include_pad;
      taps = taps * taps_inside(dim,
                                i[dim.axis],
                                all ? -dim.before : 0,
                                dim.in + (all ? dim.after : 0),
                                params.keeps_padding);
    }
    return cast(dtype, b.at(pooled, {i.begin(), i.end()}) / cast(sum_type(dtype), taps));
  };
  return b.compute("tensor", shape, average, "elemwise");
}

}  // namespace pruner
