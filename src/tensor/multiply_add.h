// A product and a sum that are rounded once, in float32. As an expression it is computed in
// float64, where the product is exact; a backend makes one instruction of it.
#pragma once

#include <optional>

#include "tensor/expr.h"

namespace pruner {

struct MultiplyAdd {
  Expr a, b, c;  // a * b + c, of float32
};

/// float32(float64(a) * float64(b) + float64(c)), of float32 operands.
Expr multiply_add(const Expr& a, const Expr& b, const Expr& c);
/// The operands of what multiply_add() makes; nothing of another expression.
std::optional<MultiplyAdd> as_multiply_add(const Expr& e);

}  // namespace pruner
