#include "lower/guards.h"

#include "tensor/affine.h"

namespace pruner {
namespace {

bool is_guard(const Expr& e) {
  const Select* guard = as<Select>(e);
  return guard != nullptr && as<Load>(guard->a) != nullptr &&
         (as<FloatImm>(guard->b) != nullptr || as<IntImm>(guard->b) != nullptr);
}

class Box {
 public:
  Box(std::span<const Expr> values, std::span<const int64_t> spans)
      : values_(values), spans_(spans) {}

  // Where `condition`, a conjunction of comparisons of affine forms, holds in all of the box; empty
  // when it is anything else.
  Expr holds(const Expr& condition) const {
    const Binary* n = as<Binary>(condition);
    if (n == nullptr) return as<IntImm>(condition) != nullptr ? condition : Expr();
    if (n->op == BinaryOp::kAnd) {
      const Expr a = holds(n->a), b = holds(n->b);
      if (!a || !b) return Expr();
      return a && b;
    }
    const std::optional<Affine> difference = to_affine(n->a - n->b);
    if (!difference) return Expr();
    switch (n->op) {
      case BinaryOp::kLt: return least_or_most(*difference, true) < Expr(0);
      case BinaryOp::kLe: return least_or_most(*difference, true) < Expr(1);
      case BinaryOp::kGe: return least_or_most(*difference, false) >= Expr(0);
      case BinaryOp::kGt: return least_or_most(*difference, false) >= Expr(1);
      default: return Expr();
    }
  }

 private:
  Expr least_or_most(const Affine& form, bool most) const {
    Expr sum = form.constant;
    for (const auto& [iterator, coefficient] : form.terms) {
      const auto v = static_cast<size_t>(iterator.value);
      const int64_t reach = coefficient * spans_[v];
      sum = sum + values_[v] * Expr(coefficient);
      if ((reach > 0) == most) sum = sum + Expr(reach);
    }
    return sum;
  }

  std::span<const Expr> values_;
  std::span<const int64_t> spans_;
};

}  // namespace

Expr guards_hold(const Expr& body, std::span<const Expr> values, std::span<const int64_t> spans) {
  const Box box(values, spans);
  Expr all;
  bool known = true;
  visit(body, [&](const Expr& e) {
    if (!is_guard(e)) return;
    const Expr one = box.holds(as<Select>(e)->condition);
    known = known && static_cast<bool>(one);
    if (known) all = all ? all && one : one;
  });
  return known ? all : Expr();
}

Expr without_guards(const Expr& body) {
  return rewrite(body, [](const Expr& e) { return is_guard(e) ? as<Select>(e)->a : Expr(); });
}

}  // namespace pruner
