// Operators that never run: views of the same bytes under another shape, and values that follow
// from shapes and constants alone.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "graph/ops/op.h"
#include "support/check.h"
#include "tensor/operator_dags.h"

namespace pruner {

using enum Fusion;

static Result<std::vector<TensorType>> view(const OpCall& call, std::vector<int64_t> shape) {
  if (element_count(shape) != element_count(call.shape(0))) {
    return Error(
        "input ", print_shape(call.shape(0)), " cannot be reshaped to ", print_shape(shape));
  }
  return {{{call.input(0).dtype, std::move(shape)}}};
}

// ONNX: a 0 copies the input's extent (or is 0 with allowzero), one -1 takes what is left.
static Types infer_reshape(const OpCall& call) {
  TRY_ASSIGN(std::vector<int64_t> shape, call.constant_integers(1, "shape"));
  const bool zero_is_zero = call.integer("allowzero", 0) != 0;
  int64_t known = 1;
  auto open = shape.end();
  for (auto it = shape.begin(); it != shape.end(); ++it) {
    const auto d = static_cast<size_t>(it - shape.begin());
    if (*it == 0 && !zero_is_zero) {
      if (d >= call.shape(0).size())
        return Error("shape copies dimension ", d, " of ", print_shape(call.shape(0)));
      *it = call.shape(0)[d];
    }
    if (*it < -1 || (*it == -1 && open != shape.end())) {
      return Error("shape has the extent ", *it, *it == -1 ? " twice" : "");
    }
    if (*it == -1) {
      open = it;
    } else if (*it > 0 && known > (int64_t{1} << 40) / *it) {
      return Error("shape is too large");
    } else {
      known *= *it;
    }
  }
  if (open != shape.end()) *open = known == 0 ? 0 : element_count(call.shape(0)) / known;
  return view(call, std::move(shape));
}

// Within a kernel: heads (see rotation.h).
static StageId lower_reshape(const OpCall& call, StageSink& to) {
  const StageId heads = add_heads(to.dag, to.input(call, 0), call.output().shape.back());
  CHECK(to.dag.shape(heads) == call.output().shape) << "a reshape in a kernel makes heads";
  return heads;
}

// Two dimensions: those before `axis` multiplied, and the others. An axis may be the rank.
static Types infer_flatten(const OpCall& call) {
  int64_t axis = call.integer("axis", 1);
  if (axis < 0) axis += call.rank();
  if (axis < 0 || axis > call.rank()) return Error("axis ", axis, " for a rank of ", call.rank());
  const std::vector<int64_t>& in = call.shape(0);
  const auto split = static_cast<size_t>(axis);
  return view(call,
              {element_count({in.data(), split}), element_count(std::span(in).subspan(split))});
}

// Without axes every extent of 1 goes.
static Types infer_squeeze(const OpCall& call) {
  std::vector<int64_t> axes, shape;
  if (call.has(1)) {
    TRY_ASSIGN(axes, call.constant_integers(1, "axes"));
    TRY_ASSIGN(axes, normal_axes(axes, call.rank()));
  }
  for (int64_t d = 0; d < call.rank(); ++d) {
    const int64_t extent = call.shape(0)[d];
    const bool named = std::find(axes.begin(), axes.end(), d) != axes.end();
    if (named && extent != 1) return Error("axis ", d, " has extent ", extent, ", expected 1");
    if (!named && (call.has(1) || extent != 1)) shape.push_back(extent);
  }
  return view(call, shape);
}

static Types infer_unsqueeze(const OpCall& call) {
  TRY_ASSIGN(std::vector<int64_t> axes, call.constant_integers(1, "axes"));
  const int64_t rank = call.rank() + static_cast<int64_t>(axes.size());
  TRY_ASSIGN(axes, normal_axes(axes, rank));
  std::vector<int64_t> shape = call.shape(0);
  for (const int64_t axis : axes) shape.insert(shape.begin() + axis, 1);
  return view(call, shape);
}

static Types infer_identity(const OpCall& call) { return {{call.type(0)}}; }

static Types infer_constant(const OpCall& call) {
  const auto it = call.node.attributes.find("value");
  if (it == call.node.attributes.end()) return Error("has no value");
  const Tensor& value = std::get<Tensor>(it->second);
  return {{{value.dtype(), value.shape()}}};
}

static Types infer_constant_of_shape(const OpCall& call) {
  TRY_ASSIGN(const std::vector<int64_t> shape, call.constant_integers(0, "shape"));
  for (const int64_t extent : shape) {
    if (extent < 0) return Error("shape has the extent ", extent);
  }
  const auto it = call.node.attributes.find("value");
  if (it == call.node.attributes.end()) return {{{DType::kFloat32, shape}}};
  const Tensor& value = std::get<Tensor>(it->second);
  if (value.num_elements() != 1) return Error("value has ", value.num_elements(), " elements");
  return {{{value.dtype(), shape}}};
}

// Infers a part of the shape from opset 15 on: `start` and `end` are clamped, never refused.
static Types infer_shape(const OpCall& call) {
  int64_t start = call.integer("start", 0), end = call.integer("end", call.rank());
  if (start < 0) start += call.rank();
  if (end < 0) end += call.rank();
  start = std::clamp<int64_t>(start, 0, call.rank());
  end = std::clamp<int64_t>(end, start, call.rank());
  return {{{DType::kInt64, {end - start}}}};
}

static Types infer_size(const OpCall&) { return {{{DType::kInt64, {}}}}; }

// max(ceil((limit - start) / delta), 0) elements.
static Types infer_range(const OpCall& call) {
  const auto start = call.scalar(0), limit = call.scalar(1), delta = call.scalar(2);
  const size_t unknown = !start ? 0 : !limit ? 1 : 2;
  static constexpr const char* kNames[] = {"start", "limit", "delta"};
  if (!start || !limit || !delta)
    return computed_at_run_time(call.graph, call.node.inputs[unknown], kNames[unknown]);
  const double n = std::ceil((*limit - *start) / *delta);
  if (!(std::abs(n) < 1e9)) return Error("the range has ", n, " elements");
  return {{{call.input(0).dtype, {std::max<int64_t>(static_cast<int64_t>(n), 0)}}}};
}

// Every element of `out` becomes the one of `value`: weights of hundreds of megabytes come this
// way.
static void fill(Tensor& out, const Tensor& value) {
  const auto bytes = static_cast<size_t>(dtype_bytes(out.dtype()));
  auto* to = static_cast<std::byte*>(out.data());
  const auto total = static_cast<size_t>(out.bytes());
  if (total == 0) return;
  std::memcpy(to, value.data(), bytes);
  for (size_t done = bytes; done < total;) {
    // Runs of at most 32 KiB, so that what is copied comes from the L1 cache.
    const size_t more = std::min({done, total - done, size_t{1} << 15});
    std::memcpy(to + done, to, more);
    done += more;
  }
}

Tensor evaluate_constant(const OpCall& call) {
  const std::string& op = call.node.op;
  const Value& output = call.output();
  const auto value = call.node.attributes.find("value");
  if (op == "Constant") return std::get<Tensor>(value->second);
  Tensor out(output.dtype, output.shape);
  if (op == "Shape") {
    int64_t start = call.integer("start", 0);
    start = std::clamp<int64_t>(start < 0 ? start + call.rank() : start, 0, call.rank());
    for (int64_t i = 0; i < out.num_elements(); ++i) {
      out.set_int(i, call.shape(0)[start + i]);
    }
  } else if (op == "Size") {
    out.set_int(0, element_count(call.shape(0)));
  } else if (op == "Range") {
    for (int64_t i = 0; i < out.num_elements(); ++i) {
      const double step = static_cast<double>(i) * *call.scalar(2);
      out.set(i, *call.scalar(0) + step);
    }
  } else {
    CHECK(op == "ConstantOfShape") << op;
    if (value == call.node.attributes.end()) return out;
    fill(out, std::get<Tensor>(value->second));
  }
  return out;
}

// The part of input 0 that is used: `extent` of an axis. An import takes any extent, to see what
// follows from it, but none where there is nothing.
static Types infer_found(const OpCall& call) {
  TRY_ASSIGN(const int64_t axis, call.axis("axis", 0, call.rank()));
  TensorType part = call.type(0);
  int64_t& extent = part.shape[axis];
  if (extent > 0) extent = call.integer("extent", extent);
  return {{part}};
}

// `least` and `most`: the numbers that it may be.
static Types infer_extent(const OpCall& call) {
  return {{{DType::kUInt8, {call.integer("extent", call.integer("most", 0))}}}};
}

// clang-format off
static constexpr GraphOp kShapeOps[] = {
    // name, fusion, fewest and most inputs, attributes, inference, lowering
    GraphOp{"Constant", kConstant, 0, 0, "value:t", infer_constant, nullptr},
    GraphOp{"ConstantOfShape", kConstant, 1, 1, "value:t", infer_constant_of_shape, nullptr},
    GraphOp{"Flatten", kAlias, 1, 1, "axis:i", infer_flatten, nullptr},
    GraphOp{"Identity", kAlias, 1, 1, "", infer_identity, nullptr},
    GraphOp{"Range", kConstant, 3, 3, "", infer_range, nullptr},
    GraphOp{"Reshape", kAlias, 2, 2, "allowzero:i", infer_reshape, lower_reshape}.moved("shape:1"),
    GraphOp{"Shape", kConstant, 1, 1, "end:i start:i", infer_shape, nullptr}.from(15),
    GraphOp{"Size", kConstant, 1, 1, "", infer_size, nullptr},
    GraphOp{"Squeeze", kAlias, 1, 2, "", infer_squeeze, nullptr}.moved("axes:1"),
    GraphOp{"Unsqueeze", kAlias, 2, 2, "", infer_unsqueeze, nullptr}.moved("axes:1"),
    GraphOp{kExtent, kOpaque, 1, 1, "extent:i least:i most:i symbol:s", infer_extent, nullptr}.with(kOwn),
    GraphOp{kFound, kOpaque, 1, 2, "axis:i extent:i symbol:s", infer_found, nullptr}.with(kTakesCodes | kOwn),
};
// clang-format on

std::span<const GraphOp> shape_ops() { return kShapeOps; }

}  // namespace pruner
