// Operators that move elements and compute nothing: each element of the output is one of an input.
#include <algorithm>
#include <array>
#include <limits>

#include "graph/evaluate.h"
#include "graph/ops/op.h"
#include "graph/ops/window.h"
#include "support/ceil_div.h"

namespace pruner {

using enum Fusion;

using Axes = std::span<const Expr>;

static std::vector<Expr> copy(Axes axes) { return {axes.begin(), axes.end()}; }

static StageId add_move(const OpCall& call,
                        StageSink& to,
                        const char* name,
                        const std::function<Expr(Axes)>& body) {
  return to.dag.compute(name, call.output().shape, body, "injective");
}

// perm, or the axes reversed.
static Result<std::vector<int64_t>> permutation(const OpCall& call) {
  std::vector<int64_t> order = call.integers("perm");
  if (order.empty()) {
    for (int64_t d = call.rank(); d-- > 0;) order.push_back(d);
  }
  std::vector<int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  bool valid = static_cast<int64_t>(order.size()) == call.rank();
  for (size_t d = 0; d < sorted.size(); ++d) valid &= sorted[d] == static_cast<int64_t>(d);
  if (!valid) return Error("perm is no order of the input's ", call.rank(), " dimensions");
  return order;
}

static Types infer_transpose(const OpCall& call) {
  TRY_ASSIGN(const std::vector<int64_t> order, permutation(call));
  TensorType out{call.input(0).dtype, {}};
  for (const int64_t d : order) out.shape.push_back(call.shape(0)[d]);
  return {{out}};
}

static StageId lower_transpose(const OpCall& call, StageSink& to) {
  const std::vector<int64_t> order = *permutation(call);
  if (!std::is_sorted(order.begin(), order.end())) {
    return add_transpose(to.dag, to.input(call, 0), order);
  }
  return add_move(
      call, to, "T_transpose", [&](Axes axes) { return to.dag.at(to.input(call, 0), copy(axes)); });
}

static Types infer_concat(const OpCall& call) {
  TRY_ASSIGN(const int64_t axis, call.axis("axis", 0, call.rank()));
  TensorType out = call.type(0);
  for (size_t i = 1; i < call.num_inputs(); ++i) {
    if (!call.has(i)) return Error("input ", i, " is missing");
    std::vector<int64_t> same = call.shape(i);
    const bool fits = call.rank(i) == call.rank() && call.input(i).dtype == out.dtype;
    if (fits) same[axis] = call.shape(0)[axis];
    if (!fits || same != call.shape(0)) {
      return Error("inputs ",
                   print_shape(call.shape(0)),
                   " and ",
                   print_shape(call.shape(i)),
                   " do not join along axis ",
                   axis);
    }
    out.shape[axis] += call.shape(i)[axis];
  }
  return {{out}};
}

static StageId lower_concat(const OpCall& call, StageSink& to) {
  const auto axis = static_cast<size_t>(*call.axis("axis", 0, call.rank()));
  std::vector<StageId> inputs;
  for (size_t i = 0; i < call.num_inputs(); ++i) {
    if (call.shape(i)[axis] > 0) inputs.push_back(to.input(call, i));
  }
  // Built from the last input to the first: each stands where the axis is below its end.
  return add_move(call, to, "T_concat", [&](Axes axes) {
    int64_t start = call.output().shape[axis];
    Expr result;
    for (size_t i = inputs.size(); i-- > 0;) {
      const int64_t end = start;
      start -= to.dag.shape(inputs[i])[axis];
      std::vector<Expr> at = copy(axes);
      at[axis] = at[axis] - start;
      const Expr value = to.dag.at(inputs[i], at);
      result = result ? select(axes[axis] < end, value, result) : value;
    }
    return result;
  });
}

namespace {

// An output's start in input 0, the step between its elements, and its extent, along each
// dimension.
struct Slices {
  std::vector<int64_t> start, step, extent;
};

}  // namespace

static StageId add_slices(const OpCall& call,
                          StageSink& to,
                          const char* name,
                          const Slices& slices) {
  return add_move(call, to, name, [&](Axes axes) {
    std::vector<Expr> at = copy(axes);
    for (size_t d = 0; d < at.size(); ++d) at[d] = at[d] * slices.step[d] + slices.start[d];
    return to.dag.at(to.input(call, 0), at);
  });
}

// ONNX: what is below 0 counts from the end. A start is clamped to [0, extent], an end too; with a
// negative step to [0, extent - 1] and [-1, extent - 1].
static Result<Slices> slices_of(const OpCall& call) {
  const size_t rank = call.shape(0).size();
  Slices s{std::vector<int64_t>(rank, 0), std::vector<int64_t>(rank, 1), call.shape(0)};
  TRY_ASSIGN(const std::vector<int64_t> starts, call.constant_integers(1, "starts"));
  TRY_ASSIGN(const std::vector<int64_t> ends, call.constant_integers(2, "ends"));
  std::vector<int64_t> axes, steps(starts.size(), 1);
  for (size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  if (call.has(3)) {
    TRY_ASSIGN(axes, call.constant_integers(3, "axes"));
  }
  if (call.has(4)) {
    TRY_ASSIGN(steps, call.constant_integers(4, "steps"));
  }
  if (ends.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size()) {
    return Error("starts, ends, axes and steps differ in length");
  }
  TRY(normal_axes(axes, call.rank()));  // each once
  for (size_t i = 0; i < axes.size(); ++i) {
    TRY_ASSIGN(const int64_t axis, normal_axis(axes[i], call.rank()));
    const auto d = static_cast<size_t>(axis);
    const int64_t extent = call.shape(0)[d], step = steps[i];
    if (step == 0 || step == std::numeric_limits<int64_t>::min()) return Error("a step is ", step);
    const auto clamped = [&](int64_t at, int64_t low, int64_t high) {
      return std::clamp(at < 0 ? at + extent : at, low, high);
    };
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
    const int64_t start = clamped(starts[i], std::max<int64_t>(low, 0), high);
    const int64_t end = clamped(ends[i], low, high);
    const int64_t reach = step > 0 ? end - start : start - end, stride = step > 0 ? step : -step;
    s.start[d] = start;
    s.extent[d] = reach > 0 ? (reach - 1) / stride + 1 : 0;
    s.step[d] = s.extent[d] > 1 ? step : 1;  // the step of one element does not matter
  }
  return s;
}

static Types infer_slice(const OpCall& call) {
  TRY_ASSIGN(const Slices slices, slices_of(call));
  return {{{call.input(0).dtype, slices.extent}}};
}

static StageId lower_slice(const OpCall& call, StageSink& to) {
  return add_slices(call, to, "T_strided_slice", *slices_of(call));
}

static Types infer_split(const OpCall& call) {
  TRY_ASSIGN(const int64_t axis, call.axis("axis", 0, call.rank()));
  const int64_t extent = call.shape(0)[axis];
  const auto parts = static_cast<int64_t>(call.node.outputs.size());
  std::vector<int64_t> sizes;
  if (call.has(1)) {
    TRY_ASSIGN(sizes, call.constant_integers(1, "split"));
  } else if (call.integer("num_outputs", parts) == parts && parts > 0) {
    // ONNX: equal parts, the last one smaller where they do not divide the extent.
    const int64_t size = ceil_div(extent, parts);
    sizes.assign(static_cast<size_t>(parts), size);
    sizes.back() = extent - size * (parts - 1);
  }
  int64_t sum = 0;
  for (const int64_t size : sizes) {
    if (size < 0 || size > extent) return Error("a part of ", size, " out of ", extent);
    sum += size;
  }
  if (static_cast<int64_t>(sizes.size()) != parts || sum != extent) {
    return Error(sizes.size(), " sizes with sum ", sum, " for ", parts, " parts of ", extent);
  }
  std::vector<TensorType> out(sizes.size(), call.type(0));
  for (size_t i = 0; i < sizes.size(); ++i) out[i].shape[axis] = sizes[i];
  return out;
}

static StageId lower_split(const OpCall& call, StageSink& to) {
  const auto axis = static_cast<size_t>(*call.axis("axis", 0, call.rank()));
  const size_t rank = call.shape(0).size();
  Slices slices{std::vector<int64_t>(rank, 0), std::vector<int64_t>(rank, 1), {}};
  for (size_t i = 0; i < call.output_index(); ++i) {
    slices.start[axis] += call.graph[call.node.outputs[i]].shape[axis];
  }
  return add_slices(call, to, "T_split", slices);
}

namespace {

// Elements before and after along each dimension, cut where negative.
struct Padding {
  std::vector<int64_t> before, after;
};

}  // namespace

static Result<Padding> padding_of(const OpCall& call) {
  const std::string mode = call.text("mode", "constant");
  if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap") {
    return Error("mode is \"", mode, "\", expected constant, edge, reflect or wrap");
  }
  TRY_ASSIGN(const std::vector<int64_t> pads, call.constant_integers(1, "pads"));
  std::vector<int64_t> axes;
  for (int64_t d = 0; d < call.rank(); ++d) axes.push_back(d);
  if (call.has(3)) {
    TRY_ASSIGN(axes, call.constant_integers(3, "axes"));
  }
  if (pads.size() != 2 * axes.size())
    return Error("pads has ", pads.size(), " elements, expected ", 2 * axes.size());
  const size_t rank = call.shape(0).size();
  Padding p{std::vector<int64_t>(rank, 0), std::vector<int64_t>(rank, 0)};
  for (size_t i = 0; i < axes.size(); ++i) {
    TRY_ASSIGN(const int64_t axis, normal_axis(axes[i], call.rank()));
    const auto d = static_cast<size_t>(axis);
    p.before[d] = pads[i];
    p.after[d] = pads[axes.size() + i];
    const int64_t most = mode == "reflect" ? call.shape(0)[d] - 1 : int64_t{1} << 30;
    const int64_t least = -call.shape(0)[d];
    if (std::max(pads[i], p.after[d]) > most || std::min(pads[i], p.after[d]) < least) {
      return Error(
          "pads of ", pads[i], " and ", p.after[d], " for an extent of ", call.shape(0)[d]);
    }
  }
  return p;
}

static Types infer_pad(const OpCall& call) {
  TRY_ASSIGN(const Padding p, padding_of(call));
  if (call.has(2) && !call.scalar(2))
    return computed_at_run_time(call.graph, call.node.inputs[2], "the padding value");
  TensorType out = call.type(0);
  for (size_t d = 0; d < out.shape.size(); ++d) out.shape[d] += p.before[d] + p.after[d];
  return {{out}};
}

static StageId lower_pad(const OpCall& call, StageSink& to) {
  const Padding p = *padding_of(call);
  const std::string mode = call.text("mode", "constant");
  const StageId data = to.input(call, 0);
  if (mode == "constant") {
    const double value = call.has(2) ? *call.scalar(2) : 0;
    return add_pad(to.dag, data, p.before, p.after, value, "T_pad", call.graph.keeps_all());
  }
  return add_move(call, to, "T_pad", [&](Axes axes) {
    std::vector<Expr> at = copy(axes);
    for (size_t d = 0; d < at.size(); ++d) {
      if (p.before[d] == 0 && p.after[d] == 0 && !call.graph.keeps_all()) continue;
      const int64_t last = call.shape(0)[d] - 1;
      at[d] = at[d] - p.before[d];
      if (mode == "edge") {
        at[d] = min(max(at[d], 0), last);
      } else if (mode == "wrap") {
        at[d] = floor_mod(at[d], last + 1);
      } else {
        // -1 is 1, and last + 1 is last - 1.
        at[d] = max(at[d], 0 - at[d]);
        at[d] = min(at[d], 2 * last - at[d]);
      }
    }
    return to.dag.at(data, at);
  });
}

// Gather and GatherElements: the axis that is indexed, and whether input 1 holds indices of it.
static Result<size_t> gathered_axis(const OpCall& call) {
  TRY_ASSIGN(const int64_t axis, call.axis("axis", 0, call.rank()));
  TRY(check_index_type(call, 1, "indices"));
  return static_cast<size_t>(axis);
}

// The element of input 0 whose place along its gathered axis input 1 holds at `index`; the other
// places are those `before` and `after` it. An index below 0 counts from the end.
static Expr gathered(const OpCall& call, StageSink& to, Axes before, Axes index, Axes after) {
  const StageId data = to.input(call, 0), indices = to.input(call, 1);
  const int64_t extent = call.shape(0)[before.size()];
  mark_indices(call, to);
  const Expr raw = cast(DType::kInt64, to.dag.at(indices, copy(index)));
  std::vector<Expr> at = copy(before);
  at.push_back(select(raw < 0, raw + extent, raw));
  at.insert(at.end(), after.begin(), after.end());
  return to.dag.at(data, at);
}

static Types infer_gather(const OpCall& call) {
  TRY_ASSIGN(const size_t axis, gathered_axis(call));
  TensorType out = call.type(0);
  const auto at = out.shape.begin() + static_cast<long>(axis);
  out.shape.insert(out.shape.erase(at), call.shape(1).begin(), call.shape(1).end());
  return {{out}};
}

static StageId lower_gather(const OpCall& call, StageSink& to) {
  const size_t axis = *gathered_axis(call), index_rank = call.shape(1).size();
  return add_move(call, to, "T_take", [&](Axes axes) {
    return gathered(call,
                    to,
                    axes.first(axis),
                    axes.subspan(axis, index_rank),
                    axes.subspan(axis + index_rank));
  });
}

static Types infer_gather_elements(const OpCall& call) {
  TRY_ASSIGN(const size_t axis, gathered_axis(call));
  const std::vector<int64_t>&data = call.shape(0), &indices = call.shape(1);
  bool fits = data.size() == indices.size();
  for (size_t d = 0; fits && d < data.size(); ++d) fits = d == axis || indices[d] <= data[d];
  if (!fits) {
    return Error("indices of ",
                 print_shape(indices),
                 " for data of ",
                 print_shape(data),
                 ": only axis ",
                 axis,
                 " may be longer");
  }
  return {{{call.input(0).dtype, indices}}};
}

static StageId lower_gather_elements(const OpCall& call, StageSink& to) {
  const size_t axis = *gathered_axis(call);
  return add_move(call, to, "T_gather", [&](Axes axes) {
    return gathered(call, to, axes.first(axis), axes, axes.subspan(axis + 1));
  });
}

// Broadcasts both ways: where the shape says 1, the input's extent stays.
static Types infer_expand(const OpCall& call) {
  TRY_ASSIGN(const std::vector<int64_t> shape, call.constant_integers(1, "shape"));
  for (const int64_t extent : shape) {
    if (extent < 0) return Error("shape has the extent ", extent);
  }
  TRY_ASSIGN(std::vector<int64_t> out, broadcast_shapes(call.shape(0), shape));
  return {{{call.input(0).dtype, out}}};
}

static StageId lower_expand(const OpCall& call, StageSink& to) {
  const std::vector<int64_t>& in = call.shape(0);
  return add_move(call, to, "T_broadcast_to", [&](Axes axes) {
    std::vector<Expr> at(axes.end() - static_cast<long>(in.size()), axes.end());
    for (size_t d = 0; d < at.size(); ++d) {
      if (in[d] == 1) at[d] = 0;
    }
    return to.dag.at(to.input(call, 0), at);
  });
}

static Types infer_tile(const OpCall& call) {
  TRY_ASSIGN(const std::vector<int64_t> repeats, call.constant_integers(1, "repeats"));
  TensorType out = call.type(0);
  if (repeats.size() != out.shape.size())
    return Error("repeats has ", repeats.size(), " elements, expected ", out.shape.size());
  for (size_t d = 0; d < repeats.size(); ++d) {
    if (!is_tensor_shape(std::array{repeats[d], out.shape[d]}))
      return Error("repeats has the element ", repeats[d]);
    out.shape[d] *= repeats[d];
  }
  return {{out}};
}

static StageId lower_tile(const OpCall& call, StageSink& to) {
  return add_move(call, to, "T_tile", [&](Axes axes) {
    std::vector<Expr> at = copy(axes);
    for (size_t d = 0; d < at.size(); ++d) {
      const int64_t extent = call.shape(0)[d];
      if (extent != call.output().shape[d]) at[d] = floor_mod(at[d], extent);
    }
    return to.dag.at(to.input(call, 0), at);
  });
}

// clang-format off
static constexpr GraphOp kMovementOps[] = {
    // name, fusion, fewest and most inputs, attributes, inference, lowering
    GraphOp{"Concat", kInjective, 1, kAnyNumber, "axis:i", infer_concat, lower_concat}.with(kReadsOnce),
    GraphOp{"Expand", kInjective, 2, 2, "", infer_expand, lower_expand},
    GraphOp{"Gather", kInjective, 2, 2, "axis:i", infer_gather, lower_gather}.reads_at(1, extent_of_axis),
    GraphOp{"GatherElements", kInjective, 2, 2, "axis:i", infer_gather_elements, lower_gather_elements}.reads_at(1, extent_of_axis),
    GraphOp{"Pad", kInjective, 2, 4, "mode:s", infer_pad, lower_pad}.moved("pads:1 value:2").with(kReadsOnce),
    GraphOp{"Slice", kInjective, 3, 5, "", infer_slice, lower_slice}.moved("starts:1 ends:2 axes:3"),
    GraphOp{"Split", kInjective, 1, 2, "axis:i num_outputs:i", infer_split, lower_split}.moved("split:1").with(kCountsOutputs),
    GraphOp{"Tile", kInjective, 2, 2, "", infer_tile, lower_tile},
    GraphOp{"Transpose", kInjective, 1, 1, "perm:I", infer_transpose, lower_transpose},
};
// clang-format on

std::span<const GraphOp> movement_ops() { return kMovementOps; }

}  // namespace pruner
