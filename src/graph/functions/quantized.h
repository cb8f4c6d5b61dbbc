// Functions that the bodies of quantized operators share. A whole number q of a narrow type stands
// for the real (q - zero) * scale. The arithmetic is float32's in the order that ONNX Runtime has
// on CPUs, so that results equal ONNX Runtime's to the last step. A zero point may be left out (not
// valid).
#pragma once

#include "graph/functions/body.h"

namespace pruner {

/// Returns input i as float32. A scale that divides must not be a constant with a 0 (fails).
Term scale_input(Body& b, size_t i);
Term divisor_input(Body& b, size_t i);

/// Returns one value as a scalar, n values as dimension `axis` of `rank`; values of several
/// dimensions stay as they are.
Term along(Term values, int64_t rank, int64_t axis);

/// Returns x / y, which no pass makes a multiplication by the reciprocal.
Term quotient(Term x, Term y);
/// Returns q - zero as int32, whose sums of products are exact.
Term centred(Term q, Term zero);
/// Returns (q - zero) * scale as float32.
Term dequantized(Term q, Term scale, Term zero);

/// Returns x + zero as float32, held to the range of `to`. NaN becomes the least number of `to`.
Term saturated(Term x, Term zero, DType to);
/// These return round(x) + zero and round(x + zero), which differ if x is halfway and zero is odd.
Term rounded(Term x, Term zero, DType to);
Term rounded_with_zero(Term x, Term zero, DType to);
/// Returns round(x / scale) + zero.
Term quantized(Term x, Term scale, Term zero, DType to);

/// Whole numbers with their scale and zero point, which may be left out.
struct Quantized {
  Term values, scale, zero;
};

/// Quantizes a tensor to uint8 with the scale and the zero point of its range, which includes 0.
Quantized dynamically_quantized(Term x);

/// Returns the product of two matrices of whole numbers as reals. Each row of `a` and column of `b`
/// may have a scale and a zero point of its own.
Term quantized_product(const Quantized& a, const Quantized& b);

}  // namespace pruner
