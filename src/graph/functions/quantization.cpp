// QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear, and functions that quantized
// operators share.
#include <algorithm>
#include <numeric>

#include "graph/functions/quantized.h"
#include "support/ceil_div.h"

namespace pruner {

Term scale_input(Body& b, size_t i) { return b.cast(b.input(i), DType::kFloat32); }

Term divisor_input(Body& b, size_t i) {
  const Term scale = b.input(i);
  if (const std::optional<Tensor>& known = scale.constant()) {
    for (int64_t e = 0; e < known->num_elements(); ++e) {
      if (known->get(e) == 0) b.fail(Error("the scale, input ", i, ", is 0 at element ", e));
    }
  }
  return scale_input(b, i);
}

Term along(Term values, int64_t rank, int64_t axis) {
  if (!values.valid() || values.rank() == 0) return values;
  if (element_count(values.shape()) == 1) return values.body->reshape(values, {});
  if (values.rank() > 1 || rank <= 1) return values;
  std::vector<int64_t> shape(static_cast<size_t>(rank), 1);
  shape[static_cast<size_t>(axis)] = values.extent(0);
  return values.body->reshape(values, shape);
}

Term quotient(Term x, Term y) { return x.body->add("Div", {x, y}, {{"exact", int64_t{1}}}); }

// Whether `t` is an integer type: its zero point may be any; floats of few bits have none.
static bool is_whole(DType t) {
  return row_of(t).kind == DTypeKind::kInt || row_of(t).kind == DTypeKind::kUInt;
}

static bool is_zero(Term zero) {
  if (!zero.valid()) return true;
  const std::optional<Tensor>& known = zero.constant();
  if (!known) return false;
  for (int64_t e = 0; e < known->num_elements(); ++e) {
    if (known->get(e) != 0) return false;
  }
  return true;
}

Term centred(Term q, Term zero) {
  Body& b = *q.body;
  const Term wide = b.cast(q, DType::kInt32);
  return is_zero(zero) ? wide : wide - b.cast(zero, DType::kInt32);
}

// Differences of integers of 16 bits are the same in float32.
Term dequantized(Term q, Term scale, Term zero) {
  Body& b = *q.body;
  const Term factor = b.cast(scale, DType::kFloat32);
  if (!is_whole(q.dtype())) return b.cast(q, DType::kFloat32) * factor;
  if (is_zero(zero)) return b.add("Dequantize", {q, factor});
  if (dtype_bytes(q.dtype()) <= 2) return b.add("Dequantize", {q, factor, zero});
  return b.add("Dequantize", {centred(q, zero), factor});
}

Term saturated(Term x, Term zero, DType to) {
  Body& b = *x.body;
  Term low = b.scalar(static_cast<double>(least_int(to)), DType::kFloat32);
  Term high = b.scalar(static_cast<double>(greatest_int(to)), DType::kFloat32);
  const bool shifts = !is_zero(zero);
  const Term shift = shifts ? b.cast(zero, DType::kFloat32) : Term{};
  if (shifts) low = low - shift, high = high - shift;
  // Not the other way round: x may be no number.
  const Term above = b.add("GreaterOrEqual", {x, low});
  const Term held = b.add("Where", {above, b.add("Min", {x, high}), low});
  return shifts ? held + shift : held;
}

// Quantizes x with a node Quantize: round(x / scale) + zero, and without a scale round(x) + zero.
static Term in_steps(Term x, Term scale, Term zero, DType to) {
  std::vector<Term> inputs = {x};
  if (scale.valid() || !is_zero(zero)) inputs.push_back(scale);
  if (!is_zero(zero)) inputs.push_back(zero);
  return x.body->add("Quantize", inputs, {{"to", std::string(dtype_name(to))}});
}

Term rounded(Term x, Term zero, DType to) { return in_steps(x, {}, zero, to); }

Term rounded_with_zero(Term x, Term zero, DType to) {
  return x.body->cast(x.body->add("Round", {saturated(x, zero, to)}), to);
}

Term quantized(Term x, Term scale, Term zero, DType to) {
  return in_steps(x.body->cast(x, DType::kFloat32), scale, zero, to);
}

Quantized dynamically_quantized(Term x) {
  Body& b = *x.body;
  std::vector<int64_t> axes(x.shape().size());
  std::iota(axes.begin(), axes.end(), 0);
  const Term none = b.scalar(0, DType::kFloat32);
  const Term least = b.add("Min", {b.reshape(b.reduce("ReduceMin", x, axes), {}), none});
  const Term most = b.add("Max", {b.reshape(b.reduce("ReduceMax", x, axes), {}), none});
  const Term range = most - least;
  const Term step = quotient(range, b.scalar(255, DType::kFloat32));
  const Term nothing = b.add("Equal", {range, none});
  const Term scale = b.add("Where", {nothing, b.scalar(1, DType::kFloat32), step});
  const Term zero = rounded(none - quotient(least, scale), {}, DType::kUInt8);
  return {quantized(x, scale, zero, DType::kUInt8), scale, zero};
}

namespace {

// How finely the scale and zero point at the call's inputs 1 and 2 divide a tensor.
struct Granularity {
  std::vector<int64_t> shape;  // shape of the data
  int64_t axis = 0, block = 0;
};

}  // namespace

static Error misfit(const Granularity& g, Term values) {
  return Error("a scale of shape ",
               print_shape(values.shape()),
               " does not fit data of shape ",
               print_shape(g.shape),
               " along axis ",
               g.axis);
}

static std::vector<int64_t> shape_of_blocks(const Granularity& g) {
  std::vector<int64_t> shape = g.shape;
  int64_t& extent = shape[static_cast<size_t>(g.axis)];
  extent = ceil_div(extent, g.block);
  return shape;
}

static bool has_blocks(Body& b, Term values, const Granularity& g) {
  const std::vector<int64_t> expected = shape_of_blocks(g);
  if (values.shape() == expected) return true;
  b.fail(Error("blocks of ",
               g.block,
               " along axis ",
               g.axis,
               " of data of shape ",
               print_shape(g.shape),
               " need a scale of shape ",
               print_shape(expected),
               ", found ",
               print_shape(values.shape())));
  return false;
}

// Repeats blocks of scales, so that each element of the data has its own scale.
static Term unblocked(Body& b, Term values, const Granularity& g) {
  const auto axis = static_cast<size_t>(g.axis);
  if (!has_blocks(b, values, g)) return values;
  std::vector<int64_t> expected = shape_of_blocks(g), repeated = expected;
  repeated.insert(repeated.begin() + g.axis + 1, g.block);
  const Term all = b.add("Expand", {b.unsqueeze(values, g.axis + 1), b.integers(repeated)});
  expected[axis] *= g.block;
  return b.slice(b.reshape(all, expected), g.axis, 0, g.shape[axis]);
}

// Returns a scale or zero point in the shape that it has beside the data.
static Term beside_data(Body& b, Term values, const Granularity& g) {
  if (!values.valid()) return values;
  if (g.block > 0) return unblocked(b, values, g);
  if (values.rank() == 0) return values;
  const auto rank = static_cast<int64_t>(g.shape.size());
  const int64_t count = element_count(values.shape());
  const bool fits = count == 1 || (rank > g.axis && count == g.shape[static_cast<size_t>(g.axis)]);
  if (values.rank() == 1 && fits) return along(values, rank, g.axis);
  b.fail(misfit(g, values));
  return values;
}

static Result<Granularity> granularity(Body& b) {
  Granularity g{b.input(0).shape(), 0, b.call().integer("block_size", 0)};
  const auto rank = static_cast<int64_t>(g.shape.size());
  const int64_t axis = b.call().integer("axis", 1);
  if (g.block < 0) return Error("block_size is ", g.block, ", expected 1 or more");
  const int64_t scales = element_count(b.input(1).shape());
  // Data of one dimension have only axis 0, and one scale for all data needs no axis.
  if (scales > 1 && rank > 1) {
    TRY_ASSIGN(g.axis, normal_axis(axis, rank));
  }
  if (b.has(2) && element_count(b.input(2).shape()) != scales) {
    return Error("the zero point is of shape ",
                 print_shape(b.input(2).shape()),
                 ", the scale ",
                 print_shape(b.input(1).shape()));
  }
  return g;
}

// Returns the type in attribute output_dtype, a number of ONNX's; `fallback` if it is left out.
static Result<DType> output_type(const Body& b, DType fallback) {
  const int64_t number = b.call().integer("output_dtype", 0);
  if (number == 0) return fallback;
  const auto row = std::ranges::find(kDTypes, number, &DTypeRow::onnx);
  if (row == std::end(kDTypes)) return Error("output_dtype ", number, " is not supported");
  return row->dtype;
}

// Quantizes to floats of few bits, rounded as Cast does; adds the zero point, which ONNX wants to
// be 0.
static Term quantized_to_code(Term ratio, Term zero, DType to) {
  Body& b = *ratio.body;
  const Term shifted = is_zero(zero) ? ratio : ratio + b.cast(zero, DType::kFloat32);
  return b.add(
      "Cast",
      {shifted},
      {{"to", std::string(dtype_name(to))}, {"saturate", b.call().integer("saturate", 1)}});
}

// Attribute precision goes unread: the division is float32's for every type, as in ONNX Runtime.
static void quantize_linear(Body& b) {
  const Term zero = b.input(2);
  const Result<DType> to = output_type(b, zero.valid() ? zero.dtype() : DType::kUInt8);
  if (!to.ok()) return b.fail(to.error());
  if (zero.valid() && zero.dtype() != *to) {
    return b.fail(Error(
        "the zero point is ", dtype_name(zero.dtype()), ", output_dtype is ", dtype_name(*to)));
  }
  const bool scales = is_code(*to) && *to != DType::kFloat8E8M0;
  if (!scales && (!is_whole(*to) || dtype_bytes(*to) > 2))
    return b.fail(Error("quantization to ", dtype_name(*to), " is not supported"));
  const Result<Granularity> g = granularity(b);
  if (!g.ok()) return b.fail(g.error());
  // A pruned channel has a scale of 0: any number of the channel stands for 0.
  const Term scale = beside_data(b, scale_input(b, 1), *g);
  const Term shift = beside_data(b, zero, *g);
  if (is_whole(*to)) return b.output(0, quantized(b.input(0), scale, shift, *to));
  const Term ratio = quotient(b.cast(b.input(0), DType::kFloat32), scale);
  b.output(0, quantized_to_code(ratio, shift, *to));
}

static void dequantize_linear(Body& b) {
  const Term x = b.input(0), zero = b.input(2);
  if (is_float(x.dtype()) || x.dtype() == DType::kBool)
    return b.fail(Error("dequantization of ", dtype_name(x.dtype()), " is not supported"));
  if (zero.valid() && zero.dtype() != x.dtype()) {
    return b.fail(Error(
        "the zero point is ", dtype_name(zero.dtype()), ", the data are ", dtype_name(x.dtype())));
  }
  const Result<DType> to = output_type(b, b.input(1).dtype());
  if (!to.ok()) return b.fail(to.error());
  const Result<Granularity> g = granularity(b);
  if (!g.ok()) return b.fail(g.error());
  if (g->block > 0 && is_whole(x.dtype()) && dtype_bytes(x.dtype()) <= 2) {
    if (!has_blocks(b, b.input(1), *g)) return;
    std::vector<Term> inputs = {x, scale_input(b, 1)};
    if (!is_zero(zero)) inputs.push_back(zero);
    const Term real =
        b.add("DequantizeBlocks", inputs, {{"axis", g->axis}, {"block_size", g->block}});
    return b.output(0, b.cast(real, *to));
  }
  const Term scale = beside_data(b, b.input(1), *g);
  b.output(0, b.cast(dequantized(x, scale, beside_data(b, zero, *g)), *to));
}

static void dynamic_quantize_linear(Body& b) {
  const Quantized made = dynamically_quantized(b.input(0));
  b.output(0, made.values);
  b.output(1, made.scale);
  b.output(2, made.zero);
}

static constexpr std::string_view kQuantize =
    "axis:i block_size:i output_dtype:i precision:i saturate:i";
static constexpr std::string_view kDequantize = "axis:i block_size:i output_dtype:i";

static constexpr Function kQuantizationFunctions[] = {
    {"DequantizeLinear", 2, 3, kDequantize, dequantize_linear},
    {"DynamicQuantizeLinear", 1, 1, "", dynamic_quantize_linear},
    {"QuantizeLinear", 2, 3, kQuantize, quantize_linear},
    {"com.microsoft::DequantizeLinear", 2, 3, kDequantize, dequantize_linear},
    {"com.microsoft::QuantizeLinear", 2, 3, kQuantize, quantize_linear},
};

std::span<const Function> quantization_functions() { return kQuantizationFunctions; }

}  // namespace pruner
