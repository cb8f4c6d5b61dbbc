// Products of quantized matrices and convolutions. Sums of products are int32's, which are exact;
// what they are multiplied by afterwards is one float32: scale of a * scale of b / scale of y.
#include <algorithm>

#include "graph/functions/quantized.h"

namespace pruner {

// Of the left matrix, whose rows may differ; of the right one, whose columns may.
static Term by_row(Term values, int64_t rank) { return along(values, rank, rank - 2); }
static Term by_column(Term values, int64_t rank) { return along(values, rank, rank - 1); }

static Term matrix_product(Body& b, Term x, Term x_zero, Term y, Term y_zero) {
  return b.add("MatMul",
               {centred(x, by_row(x_zero, x.rank())), centred(y, by_column(y_zero, y.rank()))});
}

static void matmul_integer(Body& b) {
  b.output(0, matrix_product(b, b.input(0), b.input(2), b.input(1), b.input(3)));
}

// a, its scale and zero point, the same of b, scale and zero point of y.
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
  return b.call().integer(transposed, 0) != 0 ? b.transpose(matrix, {1, 0}) : matrix;
}

// a, its scale and zero point, the same of b, c in steps of the product, and, for a result that is
// quantized, scale and zero point of y.
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
  if (b.has(6)) sums = sums + b.input(6);
  const Term a_scale = by_row(scale_input(b, 1), 2) * b.call().number("alpha", 1);
  const Term scale = a_scale * by_column(scale_input(b, 4), 2);
  const Term real = b.cast(sums, DType::kFloat32);
  if (!b.has(7)) return b.output(0, real * scale);
  const Term ratio = quotient(scale, by_row(divisor_input(b, 7), 2)), zero = b.input(8);
  b.output(0, rounded(real * ratio, by_row(zero, 2), x.dtype()));
}

// The product of a and b, whose sums are of steps of `scale`, as reals; input `bias` is added.
static Term real_product(Body& b, Term sums, Term a_scale, Term b_scale, size_t bias) {
  const int64_t rank = sums.rank();
  const Term scale = by_row(a_scale, rank) * by_column(b_scale, rank);
  const Term real = b.cast(sums, DType::kFloat32) * scale;
  return b.has(bias) ? real + b.input(bias) : real;
}

// a, b, their scales, their zero points, a bias.
static void matmul_integer_to_float(Body& b) {
  const Term sums = matrix_product(b, b.input(0), b.input(4), b.input(1), b.input(5));
  b.output(0, real_product(b, sums, scale_input(b, 2), scale_input(b, 3), 6));
}

// a of reals, b, its scale and zero point, a bias.
static void dynamic_quantize_matmul(Body& b) {
  const Dynamic a = dynamically_quantized(b.input(0));
  const Term sums = matrix_product(b, a.values, a.zero, b.input(1), b.input(3));
  b.output(0, real_product(b, sums, a.scale, scale_input(b, 2), 4));
}

// The call's own attributes are the convolution's.
static Term convolved(Body& b, Term x, Term x_zero, Term w, Term w_zero, Term bias) {
  std::vector<Term> inputs = {centred(x, along(x_zero, x.rank(), 1)),
                              centred(w, along(w_zero, w.rank(), 0))};
  if (bias.valid()) inputs.push_back(bias);
  Attributes attributes = b.call().node.attributes;
  attributes.erase("channels_last");
  return b.add("Conv", inputs, attributes);
}

static void conv_integer(Body& b) {
  b.output(0, convolved(b, b.input(0), b.input(2), b.input(1), b.input(3), {}));
}

// x, its scale and zero point, the same of w, scale and zero point of y, a bias in steps of the
// product. With channels_last, as ONNX Runtime's optimizer writes it, x and y have them last.
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

static constexpr Function kRows[] = {
    {"ConvInteger", 2, 4, kConv, conv_integer},
    {"MatMulInteger", 2, 4, "", matmul_integer},
    {"QLinearConv", 8, 9, kConv, qlinear_conv},
    {"QLinearMatMul", 8, 8, "", qlinear_matmul},
    {"com.microsoft::DynamicQuantizeMatMul", 3, 5, "", dynamic_quantize_matmul},
    {"com.microsoft::MatMulIntegerToFloat", 4, 7, "", matmul_integer_to_float},
    {"com.microsoft::QGemm", 6, 9, "alpha:f transA:i transB:i", q_gemm},
    {"com.microsoft::QLinearConv", 8, 9, kConvLast, qlinear_conv},
};

std::span<const Function> quantized_contraction_functions() { return kRows; }

}  // namespace pruner
