#include "lower/guards.h"

#include <algorithm>

#include "support/mend.h"

namespace pruner {
namespace {

// Guards nest where padding is read through a window that has padding of its own. Every level is a
// guard, so that none is taken away whose condition was not looked at.
bool is_guard(const Expr& e) {
  const Select* guard = as<Select>(e);
  if (guard == nullptr) return false;
  const bool nests = is_in(Mend::kOuterGuards) && is_guard(guard->a);
  return (as<Load>(guard->a) != nullptr || nests) &&
         (as<FloatImm>(guard->b) != nullptr || as<IntImm>(guard->b) != nullptr);
}

// The least or the greatest value of an affine form over the box; empty when it is none.
Expr extreme(const Expr& e, const VarBox& box, bool most) {
  const std::optional<Affine> form = to_affine(e);
  if (!form) return Expr();
  return rewrite(e, [&](const Expr& part) {
    const Var* var = as<Var>(part);
    if (var == nullptr) return Expr();
    const auto range = std::ranges::find(box, var->id, &VarBox::value_type::first);
    if (range == box.end()) return Expr();
    const bool high = (form->coefficient(var->id) > 0) == most;
    return Expr(high ? range->second.second : range->second.first);
  });
}

// Returns when `condition`, a conjunction of comparisons of affine forms, holds in all of the box;
// empty if `condition` is anything else.
Expr holds(const Expr& condition, const VarBox& box) {
  const Binary* n = as<Binary>(condition);
  if (n == nullptr) return as<IntImm>(condition) != nullptr ? condition : Expr();
  const bool below = n->op == BinaryOp::kLt || n->op == BinaryOp::kLe;
  const bool strict = n->op == BinaryOp::kLt || n->op == BinaryOp::kGt;
  if (n->op == BinaryOp::kAnd) {
    const Expr a = holds(n->a, box), b = holds(n->b, box);
    if (!a || !b) return Expr();
    return a && b;
  }
  if (!below && n->op != BinaryOp::kGe && n->op != BinaryOp::kGt) return Expr();
  // In the whole box a < b holds where the greatest a - b is below 0, a >= b where the least is
  // not.
  const Expr worst = extreme(n->a - n->b, box, below);
  if (!worst) return Expr();
  return below ? worst < Expr(strict ? 0 : 1) : worst >= Expr(strict ? 1 : 0);
}

}  // namespace

Expr guards_hold(const Expr& body, const VarBox& box) {
  Expr all;
  bool known = true;
  visit(body, [&](const Expr& e) {
    if (!known || !is_guard(e)) return;
    const Expr one = holds(as<Select>(e)->condition, box);
    known = static_cast<bool>(one);
    if (known) all = all ? all && one : one;
  });
  return known ? all : Expr();
}

Expr without_guards(const Expr& body) {
  return rewrite(body, [](const Expr& e) { return is_guard(e) ? as<Select>(e)->a : Expr(); });
}

}  // namespace pruner
