// Products of quantized matrices and convolutions. Sums of products are int32, which is exact. Each
// sum is then multiplied by one float32: scale of a * scale of b / scale of y.
#include <algorithm>
#include <cmath>

#include "graph/evaluate.h"
#include "graph/functions/quantized.h"

namespace pruner {

// These shape scales or zero points of the left matrix, whose rows may differ, and of the right
// matrix, whose columns may differ.
static Term by_row(Term values, int64_t rank) { return along(values, rank, rank - 2); }
static Term by_column(Term values, int64_t rank) { return along(values, rank, rank - 1); }

namespace {

// Products of unsigned and constant signed bytes, as integer instructions take them. The sum
// sum (x - zx) w is sum x w and, for each output, the constant -zx * sum w.
struct NarrowProduct {
  Term x;          // uint8
  int64_t x_zero;  // zero point of x
  Tensor w;        // int8, whose zero point is 0
};

// Greatest sums with which an int32 does not wrap around, and with which a float32 is exact.
constexpr int64_t kInt32Sums = (int64_t{1} << 31) - 1;
constexpr int64_t kFloat32Sums = int64_t{1} << 24;
constexpr int64_t kMostOfByte = 255, kMostOfSignedByte = 128;

}  // namespace

static bool is_byte(DType t) { return t == DType::kUInt8 || t == DType::kInt8; }

// Returns the weight less its zero points, which belong to dimension `axis`; nothing if a
// difference is no byte.
static std::optional<Tensor> symmetric_weight(Term w, Term zero, size_t axis) {
  const std::optional<Tensor>& known = w.constant();
  if (!known || !is_byte(w.dtype()) || (zero.valid() && !zero.constant())) return std::nullopt;
  const int64_t n = zero.valid() ? zero.constant()->num_elements() : 1;
  if (n != 1 && n != known->shape()[axis]) return std::nullopt;
  const int64_t run = element_count(std::span(known->shape()).subspan(axis + 1));
  bool none = w.dtype() == DType::kInt8;
  for (int64_t i = 0; zero.valid() && i < n; ++i) none = none && zero.constant()->get_int(i) == 0;
  if (none) return known;
  Tensor symmetric(DType::kInt8, known->shape());
  for (int64_t i = 0; i < known->num_elements(); ++i) {
    const int64_t value =
        known->get_int(i) - (zero.valid() ? zero.constant()->get_int(i / run % n) : 0);
    if (value < least_int(DType::kInt8) || value > greatest_int(DType::kInt8)) return std::nullopt;
    symmetric.set_int(i, value);
  }
  return symmetric;
}

// Returns the product if the data are bytes with one zero point for all, and the weight is known.
// The weight's zero points belong to dimension `axis`.
static std::optional<NarrowProduct> narrow_product(
    Term x, Term x_zero, Term w, Term w_zero, size_t axis) {
  Body& b = *x.body;
  if (!is_byte(x.dtype()) || x.constant()) return std::nullopt;
  if (x_zero.valid() && (!x_zero.constant() || x_zero.constant()->num_elements() != 1))
    return std::nullopt;
  std::optional<Tensor> weight = symmetric_weight(w, w_zero, axis);
  if (!weight) return std::nullopt;
  const int64_t zero = x_zero.valid() ? x_zero.constant()->get_int(0) : 0;
  if (x.dtype() == DType::kUInt8) return NarrowProduct{x, zero, *weight};
  // With the upper bit changed, a signed byte is an unsigned one that is 128 more.
  const Term bits = b.add("BitCast", {x}, {{"to", std::string("uint8")}});
  return NarrowProduct{bits + double{kMostOfSignedByte}, zero + kMostOfSignedByte, *weight};
}

// Returns one number for each output: `of` the output, times -factor.
static Term negative_sums(Body& b,
                          int64_t outputs,
                          int64_t factor,
                          const std::function<int64_t(int64_t)>& of) {
  Tensor sums(DType::kInt32, {outputs});
  for (int64_t i = 0; i < outputs; ++i) sums.set_int(i, wrap_to(DType::kInt32, -factor * of(i)));
  return b.constant(std::move(sums));
}

static Attributes sums_in(DType dtype) { return {{"sums", std::string(dtype_name(dtype))}}; }

// Returns x [..., k] times a matrix w [k, n].
static Term narrow_matrix_product(Body& b, const NarrowProduct& p) {
  const int64_t k = p.w.shape()[0], n = p.w.shape()[1];
  const Term product = b.add("MatMul", {p.x, b.constant(p.w)}, sums_in(DType::kInt32));
  if (p.x_zero == 0) return product;
  return product + negative_sums(b, n, p.x_zero, [&](int64_t column) {
           int64_t sum = 0;
           for (int64_t row = 0; row < k; ++row) sum += p.w.get_int(row * n + column);
           return sum;
         });
}

// Returns the sums as int32, or as float32 if float32 is exact and no integer instruction makes the
// sums, as for two computed matrices.
static Term matrix_product(Body& b, Term x, Term x_zero, Term y, Term y_zero) {
  const int64_t k = x.extent(-1);
  if (y.rank() == 2 && k * kMostOfByte * kMostOfSignedByte <= kInt32Sums) {
    const std::optional<NarrowProduct> narrow = narrow_product(x, x_zero, y, y_zero, 1);
    if (narrow) return narrow_matrix_product(b, *narrow);
  }
  Term left = centred(x, by_row(x_zero, x.rank()));
  Term right = centred(y, by_column(y_zero, y.rank()));
  const bool bytes = is_byte(x.dtype()) && is_byte(y.dtype());
  if (bytes && k * kMostOfByte * kMostOfByte <= kFloat32Sums) {
    left = b.cast(left, DType::kFloat32);
    right = b.cast(right, DType::kFloat32);
  }
  return b.add("MatMul", {left, right});
}

static void matmul_integer(Body& b) {
  const Term sums = matrix_product(b, b.input(0), b.input(2), b.input(1), b.input(3));
  b.output(0, b.cast(sums, DType::kInt32));
}

// The inputs are a, its scale and zero point, the same of b, and scale and zero point of y.
static void qlinear_matmul(Body& b) {
  const Term sums = matrix_product(b, b.input(0), b.input(2), b.input(3), b.input(5));
  const int64_t rank = sums.rank();
  const Term product = by_row(scale_input(b, 1), rank) * by_column(scale_input(b, 4), rank);
  const Term ratio = quotient(product, by_row(divisor_input(b, 6), rank));
  const Term zero = b.input(7);
  const Term real = b.cast(sums, DType::kFloat32) * ratio;
  b.output(0, rounded(real, by_row(zero, rank), zero.dtype()));
}

static Term oriented(Body& b, Term matrix, const char* transposed) {
  if (b.call().integer(transposed, 0) == 0) return matrix;
  const std::vector<int64_t> order = {1, 0};
  // A weight is looked at while the graph is made.
  return matrix.constant() ? b.constant(permuted(*matrix.constant(), order))
                           : b.transpose(matrix, order);
}

// The inputs are a, its scale and zero point, the same of b, and c in steps of the product. A
// quantized result also has scale and zero point of y.
static void q_gemm(Body& b) {
  if (b.input(0).rank() != 2 || b.input(3).rank() != 2) {
    return b.fail(Error("operands ",
                        print_shape(b.input(0).shape()),
                        " and ",
                        print_shape(b.input(3).shape()),
                        " have to be matrices"));
  }
  const Term x = oriented(b, b.input(0), "transA"), y = oriented(b, b.input(3), "transB");
  Term sums = matrix_product(b, x, b.input(2), y, b.input(5));
  if (b.has(6)) sums = b.cast(sums, DType::kInt32) + b.input(6);
  const Term a_scale = by_row(scale_input(b, 1), 2) * b.call().number("alpha", 1);
  const Term scale = a_scale * by_column(scale_input(b, 4), 2);
  const Term real = b.cast(sums, DType::kFloat32);
  if (!b.has(7)) return b.output(0, real * scale);
  const Term ratio = quotient(scale, by_row(divisor_input(b, 7), 2)), zero = b.input(8);
  b.output(0, rounded(real * ratio, by_row(zero, 2), x.dtype()));
}

Term quantized_product(const Quantized& a, const Quantized& b) {
  Body& body = *a.values.body;
  const Term sums = matrix_product(body, a.values, a.zero, b.values, b.zero);
  const int64_t rank = sums.rank();
  const Term scale = by_row(a.scale, rank) * by_column(b.scale, rank);
  return body.cast(sums, DType::kFloat32) * scale;
}

// Returns the product with a bias, input `bias` of the call.
static Term with_bias(Body& b, Term product, size_t bias) {
  return b.has(bias) ? product + b.input(bias) : product;
}

// The inputs are a, b, their scales, their zero points and a bias.
static void matmul_integer_to_float(Body& b) {
  const Term product = quantized_product({b.input(0), scale_input(b, 2), b.input(4)},
                                         {b.input(1), scale_input(b, 3), b.input(5)});
  b.output(0, with_bias(b, product, 6));
}

// The inputs are a of reals, b, its scale and zero point, and a bias.
static void dynamic_quantize_matmul(Body& b) {
  const Term product = quantized_product(dynamically_quantized(b.input(0)),
                                         {b.input(1), scale_input(b, 2), b.input(3)});
  b.output(0, with_bias(b, product, 4));
}

// Returns how many products of taps and channels make one sum: w is [co, ci / groups, kernel...].
static int64_t products_of(const Tensor& w) { return w.num_elements() / w.shape()[0]; }

// Pads [co, ci, ...] with zeros to [co, ci + more, ...], and data [n, c, ...] alike.
static Term with_channels(Body& b, Term x, int64_t more) {
  std::vector<int64_t> pads(static_cast<size_t>(2 * x.rank()), 0);
  pads[static_cast<size_t>(x.rank()) + 1] = more;
  return b.add("Pad", {x, b.integers(pads)});
}

// Returns the bias less the sums that the zero point of the data makes.
static Term shifted_bias(Body& b, const NarrowProduct& p, Term bias) {
  if (p.x_zero == 0) return bias;
  const int64_t run = products_of(p.w);
  const Term shift = negative_sums(b, p.w.shape()[0], p.x_zero, [&](int64_t channel) {
    int64_t sum = 0;
    for (int64_t i = channel * run; i < (channel + 1) * run; ++i) sum += p.w.get_int(i);
    return sum;
  });
  return bias.valid() ? bias + shift : shift;
}

// Whether float32 holds each of the bias and the sums of products.
static bool is_exact_in_float32(const NarrowProduct& p, Term bias) {
  if (products_of(p.w) * kMostOfByte * kMostOfSignedByte > kFloat32Sums) return false;
  if (!bias.valid()) return true;
  const std::optional<Tensor>& known = bias.constant();
  for (int64_t i = 0; known && i < known->num_elements(); ++i)
    if (std::abs(known->get_int(i)) > kFloat32Sums) return false;
  return known.has_value();
}

// With a group for each channel no instruction adds up several products. Vectors of float32 make
// more products a cycle than vectors of int32.
static Term narrow_convolution(Body& b, const NarrowProduct& p, Term bias, Attributes attributes) {
  constexpr int64_t kTerms = 4;  // products in a dot product of bytes
  const int64_t groups = b.call().integer("group", 1);
  bias = shifted_bias(b, p, bias);
  const bool real = groups > 1 && is_exact_in_float32(p, bias);
  const DType sums = real ? DType::kFloat32 : DType::kInt32;
  attributes["sums"] = std::string(dtype_name(sums));
  if (p.x_zero != 0) attributes["pad_value"] = p.x_zero;
  Term x = p.x, w = b.constant(p.w);
  const int64_t short_of = (kTerms - x.extent(1) % kTerms) % kTerms;
  if (groups == 1 && short_of > 0) {
    x = with_channels(b, x, short_of);
    w = with_channels(b, w, short_of);
  }
  std::vector<Term> inputs = {x, real ? b.cast(w, sums) : w};
  if (bias.valid()) inputs.push_back(b.cast(bias, sums));
  return b.add("Conv", inputs, attributes);
}

// The call's own attributes are the convolution's. The sums are int32, or exact in float32.
static Term convolved(Body& b, Term x, Term x_zero, Term w, Term w_zero, Term bias) {
  Attributes attributes = b.call().node.attributes;
  attributes.erase("channels_last");
  const std::optional<NarrowProduct> narrow =
      w.constant() && w.rank() > 2 &&
              products_of(*w.constant()) * kMostOfByte * kMostOfSignedByte <= kInt32Sums
          ? narrow_product(x, x_zero, w, w_zero, 0)
          : std::nullopt;
  if (narrow) return narrow_convolution(b, *narrow, bias, std::move(attributes));
  std::vector<Term> inputs = {centred(x, along(x_zero, x.rank(), 1)),
                              centred(w, along(w_zero, w.rank(), 0))};
  if (bias.valid()) inputs.push_back(bias);
  return b.add("Conv", inputs, attributes);
}

static void conv_integer(Body& b) {
  const Term sums = convolved(b, b.input(0), b.input(2), b.input(1), b.input(3), {});
  b.output(0, b.cast(sums, DType::kInt32));
}

// The inputs are x, its scale and zero point, the same of w, and scale and zero point of y. The
// last input is a bias in steps of the product. With channels_last, as ONNX Runtime's optimizer
// writes, x and y have channels last.
static void qlinear_conv(Body& b) {
  const bool last = b.call().integer("channels_last", 0) != 0;
  const int64_t rank = b.input(0).rank();
  const Term x = last ? b.transpose(b.input(0), channels_first_order(rank)) : b.input(0);
  const Term sums = convolved(b, x, b.input(2), b.input(3), b.input(5), b.input(8));
  const Term scale = scale_input(b, 1), y_scale = divisor_input(b, 6), zero = b.input(7);
  const Term product = along(scale, rank, 1) * along(scale_input(b, 4), rank, 1);
  const Term ratio = quotient(product, along(y_scale, rank, 1));
  const Term real = b.cast(sums, DType::kFloat32) * ratio;
  const Term y = rounded(real, along(zero, rank, 1), zero.dtype());
  b.output(0, last ? b.transpose(y, channels_last_order(rank)) : y);
}

static constexpr std::string_view kConv =
    "auto_pad:s dilations:I group:i kernel_shape:I pads:I strides:I";
static constexpr std::string_view kConvLast =
    "auto_pad:s channels_last:i dilations:I group:i kernel_shape:I pads:I strides:I";

static constexpr Function kQuantizedContractionFunctions[] = {
    {"ConvInteger", 2, 4, kConv, conv_integer},
    {"MatMulInteger", 2, 4, "", matmul_integer},
    {"QLinearConv", 8, 9, kConv, qlinear_conv},
    {"QLinearMatMul", 8, 8, "", qlinear_matmul},
    {"com.microsoft::DynamicQuantizeMatMul", 3, 5, "", dynamic_quantize_matmul},
    {"com.microsoft::MatMulIntegerToFloat", 4, 7, "", matmul_integer_to_float},
    {"com.microsoft::QGemm", 6, 9, "alpha:f transA:i transB:i", q_gemm},
    {"com.microsoft::QLinearConv", 8, 9, kConvLast, qlinear_conv},
};

std::span<const Function> quantized_contraction_functions() {
  return kQuantizedContractionFunctions;
}

}  // namespace pruner
