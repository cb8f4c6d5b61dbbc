// Floats of few bits (DTypeKind::kCode), in memory and in expressions known by their bits: the
// value of a code as float32, and the code that stands for a float, as ONNX's Cast has them. Both
// are expressions over integers, so that every backend and the interpreters give the same bits.
#pragma once

#include "tensor/expr.h"

namespace pruner {

/// How a float8e8m0, which holds powers of two only, is chosen for what lies between two.
enum class CodeRounding : uint8_t { kUp, kDown, kNearest };

/// The value, a float32, of a code of its type.
Expr decode_code(const Expr& code);

/// The code of type `to` for a float32 or float64: nearest, halves to even. What is out of range
/// becomes the greatest of its sign if it `saturates`, and else infinity, or NaN where the type has
/// none. float4e2m1 has neither: it saturates, and NaN is its greatest. `rounding` is of
/// float8e8m0, which has no sign: that of a value is dropped.
Expr encode_code(DType to, const Expr& value, bool saturates, CodeRounding rounding);

}  // namespace pruner
