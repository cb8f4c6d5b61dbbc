// Quantized operators of ONNX Runtime other than contractions.
#include <algorithm>
#include <cmath>

#include "graph/functions/quantized.h"

namespace pruner {

static Term one(Term value) { return along(value, 0, 0); }

// Returns a quantized tensor from three of a call's inputs: numbers, their scale and zero point.
static Quantized quantized_input(Body& b, size_t i) {
  return {b.input(i), one(scale_input(b, i + 1)), one(b.input(i + 2))};
}

static Term reals(const Quantized& x) { return dequantized(x.values, x.scale, x.zero); }

// Writes y as the quantized result, whose scale and zero point are inputs i and i + 1.
static void quantized_output(Body& b, Term y, size_t i, DType to) {
  b.output(0, quantized(y, one(divisor_input(b, i)), one(b.input(i + 1)), to));
}

// The zero points of x, y and the result make one addend, added before rounding. Products are added
// without being rounded, in the order that ONNX Runtime has on CPUs with such instructions.
static void qlinear_add(Body& b) {
  const Quantized x = quantized_input(b, 0), y = quantized_input(b, 3);
  const Term scale = one(divisor_input(b, 6));
  const Term x_ratio = quotient(x.scale, scale), y_ratio = quotient(y.scale, scale);
  const auto real = [&](Term q) {
    return q.valid() ? b.cast(q, DType::kFloat32) : b.scalar(0, DType::kFloat32);
  };
  const auto multiply_add = [&](Term q, Term ratio, Term to) {
    return b.add("MultiplyAdd", {real(q), ratio, to});
  };
  const Term fixed = real(one(b.input(7))) - multiply_add(x.zero, x_ratio, y_ratio * real(y.zero));
  const Term sum = multiply_add(x.values, x_ratio, multiply_add(y.values, y_ratio, fixed));
  b.output(0, rounded(sum, {}, x.values.dtype()));
}

static void qlinear_mul(Body& b) {
  const Quantized x = quantized_input(b, 0), y = quantized_input(b, 3);
  const Term ratio = quotient(x.scale * y.scale, one(divisor_input(b, 6)));
  const Term whole = centred(x.values, x.zero) * centred(y.values, y.zero);
  const Term product = b.cast(whole, DType::kFloat32) * ratio;
  b.output(0, rounded_with_zero(product, one(b.input(7)), x.values.dtype()));
}

static void qlinear_sigmoid(Body& b) {
  const Quantized x = quantized_input(b, 0);
  quantized_output(b, b.add("Sigmoid", {reals(x)}), 3, x.values.dtype());
}

static void qlinear_leaky_relu(Body& b) {
  const Quantized x = quantized_input(b, 0);
  const Term y = b.add("LeakyRelu", {reals(x)}, {{"alpha", b.call().number("alpha", 0.01)}});
  quantized_output(b, y, 3, x.values.dtype());
}

// Returns `value` with channels first; the call's data have channels last if channels_last is set.
static Term channels_first(Body& b, Term value) {
  if (b.call().integer("channels_last", 0) == 0) return value;
  return b.transpose(value, channels_first_order(value.rank()));
}
static Term in_layout(Body& b, Term value) {
  if (b.call().integer("channels_last", 0) == 0) return value;
  return b.transpose(value, channels_last_order(value.rank()));
}

static void qlinear_average_pool(Body& b) {
  const Quantized x = quantized_input(b, 0);
  Attributes attributes = b.call().node.attributes;
  attributes.erase("channels_last");
  const Term mean = b.add("AveragePool", {channels_first(b, reals(x))}, attributes);
  const Term y = quotient(mean, one(divisor_input(b, 3)));
  b.output(0, in_layout(b, rounded_with_zero(y, one(b.input(4)), x.values.dtype())));
}

static void qlinear_global_average_pool(Body& b) {
  const Quantized x = quantized_input(b, 0);
  const Term data = channels_first(b, centred(x.values, x.zero));
  if (data.rank() < 3)
    return b.fail(Error("data of shape ", print_shape(data.shape()), " need 3 dimensions or more"));
  std::vector<int64_t> axes;
  int64_t count = 1;
  for (int64_t d = 2; d < data.rank(); ++d) {
    axes.push_back(d);
    count *= data.extent(d);
  }
  const Term sums = b.cast(b.reduce("ReduceSum", data, axes), DType::kFloat32);
  const Term parts = one(divisor_input(b, 3)) * static_cast<double>(count);
  const Term mean = sums * quotient(x.scale, parts);
  b.output(0, in_layout(b, rounded(mean, one(b.input(4)), x.values.dtype())));
}

// Whether two scalars are known and the same.
static bool equal(Term a, Term b) {
  if (!a.valid() || !b.valid() || !a.constant() || !b.constant()) return false;
  return a.dtype() == b.dtype() && a.constant()->get(0) == b.constant()->get(0);
}

// Returns x as numbers with the scale and the zero point of a result.
static Term requantized(const Quantized& x, Term scale, Term zero) {
  if (equal(x.scale, scale) && equal(x.zero, zero)) return x.values;
  return quantized(reals(x), scale, zero, zero.dtype());
}

// The inputs are scale and zero point of the result, then three inputs for each part.
static void qlinear_concat(Body& b) {
  const size_t inputs = b.call().num_inputs();
  if (inputs % 3 != 2) return b.fail(Error("takes 2 inputs and 3 for each part, found ", inputs));
  const Term scale = one(divisor_input(b, 0)), zero = one(b.input(1));
  std::vector<Term> parts;
  for (size_t i = 2; i < inputs; i += 3)
    parts.push_back(requantized(quantized_input(b, i), scale, zero));
  b.output(0, b.concat(parts, b.call().integer("axis", 0)));
}

// The inputs are the condition, x and y with their scales and zero points, and the result's scale
// and zero point.
static void qlinear_where(Body& b) {
  const Term scale = one(divisor_input(b, 7)), zero = one(b.input(8));
  const Term x = requantized(quantized_input(b, 1), scale, zero);
  const Term y = requantized(quantized_input(b, 4), scale, zero);
  b.output(0, b.add("Where", {b.input(0), x, y}));
}

// A result is the exponential times the whole number of steps in 1, over the sum of exponentials.
// Before opset 13 softmax is over all dimensions from the axis on.
static void qlinear_softmax(Body& b) {
  const Quantized x = quantized_input(b, 0);
  const int64_t rank = x.values.rank();
  const bool whole = b.call().integer("opset", 13) < 13;
  const Result<int64_t> axis = b.call().axis("axis", whole ? 1 : -1, rank);
  if (!axis.ok()) return b.fail(axis.error());
  std::vector<int64_t> axes = {*axis};
  while (whole && axes.back() + 1 < rank) axes.push_back(axes.back() + 1);
  const Term wide = b.cast(x.values, DType::kInt32);
  const Term below = b.cast(wide - b.reduce("ReduceMax", wide, axes), DType::kFloat32);
  const Term powers = b.add("Exp", {below * x.scale});
  const Term one_over = quotient(b.scalar(1, DType::kFloat32), one(divisor_input(b, 3)));
  const Term steps = b.add("Floor", {one_over});
  const Term y = quotient(powers * steps, b.reduce("ReduceSum", powers, axes));
  b.output(0, rounded(y, one(b.input(4)), x.values.dtype()));
}

static constexpr std::string_view kPool =
    "auto_pad:s ceil_mode:i channels_last:i count_include_pad:i kernel_shape:I pads:I strides:I";

static constexpr Function kQuantizedFunctions[] = {
    {"com.microsoft::QLinearAdd", 7, 8, "", qlinear_add},
    {"com.microsoft::QLinearAveragePool", 4, 5, kPool, qlinear_average_pool},
    {"com.microsoft::QLinearConcat", 5, kAnyNumber, "axis:i", qlinear_concat},
    {"com.microsoft::QLinearGlobalAveragePool",
     5,
     5,
     "channels_last:i",
     qlinear_global_average_pool},
    {"com.microsoft::QLinearLeakyRelu", 4, 5, "alpha:f", qlinear_leaky_relu},
    {"com.microsoft::QLinearMul", 7, 8, "", qlinear_mul},
    {"com.microsoft::QLinearSigmoid", 4, 5, "", qlinear_sigmoid},
    {"com.microsoft::QLinearSoftmax", 5, 5, "axis:i opset:i", qlinear_softmax},
    {"com.microsoft::QLinearWhere", 9, 9, "", qlinear_where},
};

std::span<const Function> quantized_functions() { return kQuantizedFunctions; }

}  // namespace pruner
