// Index arithmetic: integer expressions as affine forms, their bounds over boxes of variables, and
// the simplification that both rest on. A Range is inclusive; ranges[i] is that of variable i, and
// a variable without one is taken as unbounded.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tensor/expr.h"

namespace pruner {

using Range = std::pair<int64_t, int64_t>;

/// `kUnbounded` is the range that bounds() gives for "no bound".
inline constexpr Range kUnbounded = {-(int64_t{1} << 60), int64_t{1} << 60};

/// sum(coefficient * variable) + constant; terms ascend by variable, no coefficient is zero.
struct Affine {
  std::vector<std::pair<VarId, int64_t>> terms;
  int64_t constant = 0;

  int64_t coefficient(VarId var) const;
  friend bool operator==(const Affine&, const Affine&) = default;
};

/// The affine form of an int64 expression, if it is a sum of multiples of variables as it stands.
std::optional<Affine> to_affine(const Expr& e);
Expr to_expr(const Affine& affine, const std::function<std::string(VarId)>& var_name);

/// An equal expression for all values of the variables in their ranges: sums in normal form,
/// divisions and remainders split into a divisible and a bounded part ((32*i + j)//32 is i when
/// 0 <= j < 32), what the bounds decide decided; everywhere in `e`, indices of loads included.
Expr simplify(const Expr& e, std::span<const Range> ranges);

/// Bounds of an int64 or bool expression.
Range bounds(const Expr& e, std::span<const Range> ranges);

/// Returns bounds of xor(a, b) for operands that are not negative: the result has no bit above the
/// bits that the operands may have.
Range bounds_of_xor(Range a, Range b);

/// Whether the form of `e` shows that it is a multiple of `divisor`; lets[i]: what variable i is,
/// if that is known.
bool is_multiple(const Expr& e, int64_t divisor, std::span<const Expr> lets);

}  // namespace pruner
