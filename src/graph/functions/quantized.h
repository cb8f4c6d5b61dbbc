// What the bodies of quantized operators share. A whole number q of a narrow type stands for the
// real (q - zero) * scale. The arithmetic is float32's in the order that ONNX Runtime has on CPUs,
// so that results are its results to the last step; a zero point may be left out (not valid).
#pragma once

#include "graph/functions/body.h"

namespace pruner {

/// Input i as float32. A scale that is divided by must not be a constant with a 0 (fails).
Term scale_input(Body& b, size_t i);
Term divisor_input(Body& b, size_t i);

/// One value as a scalar; n values as the dimension `axis` of `rank`; of several dimensions, as is.
Term along(Term values, int64_t rank, int64_t axis);

/// x / y, which no pass makes a multiplication by the reciprocal.
Term quotient(Term x, Term y);
/// q - zero as int32, whose sums of products are exact.
Term centred(Term q, Term zero);
/// (q - zero) * scale as float32.
Term dequantized(Term q, Term scale, Term zero);

/// x + zero as float32, held to what `to` has numbers for. No number at all becomes the least.
Term saturated(Term x, Term zero, DType to);
/// round(x) + zero and round(x + zero), which differ where x is halfway and zero is odd.
Term rounded(Term x, Term zero, DType to);
Term rounded_with_zero(Term x, Term zero, DType to);
/// round(x / scale) + zero.
Term quantized(Term x, Term scale, Term zero, DType to);

/// Whole numbers with their scale and zero point, which may be left out.
struct Quantized {
  Term values, scale, zero;
};

/// A tensor as uint8 with the scale and the zero point that its range, which includes 0, asks for.
Quantized dynamically_quantized(Term x);

/// The product of two matrices of whole numbers as reals. Each row of `a` and column of `b` may
/// have a scale and a zero point of its own.
Term quantized_product(const Quantized& a, const Quantized& b);

}  // namespace pruner
