// Rules over neighbouring nodes: sums, products, quotients, remainders, comparisons.
#include <array>

#include "ansor/tvm_rewriter.h"

namespace pruner::ansor {

Expr RuleRewriter::rule(const Expr& e, const Binary& node) {
  const bool index = is_index(node.a);
  switch (node.op) {
    case BinaryOp::kAdd: return index ? add(e, node.a, node.b) : e;
    case BinaryOp::kSub: return index ? sub(e, node.a, node.b) : e;
    case BinaryOp::kMul: return index ? mul(e, node.a, node.b) : e;
    case BinaryOp::kFloorDiv: return div(e, node.a, node.b);
    case BinaryOp::kFloorMod: return mod(e, node.a, node.b);
    case BinaryOp::kMin:
    case BinaryOp::kMax: return index ? extremum(e, node) : e;
    case BinaryOp::kEq: return index ? equal(e, node.a, node.b) : e;
    case BinaryOp::kLt: return index ? less(e, node.a, node.b) : e;
    default: return e;
  }
}

// x and y of x * y + x * z in any order, with the factor that both share.
static std::optional<std::array<Expr, 3>> shared_factor(const Expr& a, const Expr& b) {
  const Binary *left = as_op(a, BinaryOp::kMul), *right = as_op(b, BinaryOp::kMul);
  if (left && same(left->a, b)) return std::array{b, left->b, Expr(1)};
  if (left && same(left->b, b)) return std::array{b, left->a, Expr(1)};
  if (right && same(right->b, a)) return std::array{a, Expr(1), right->a};
  if (right && same(right->a, a)) return std::array{a, Expr(1), right->b};
  if (!left || !right) return std::nullopt;
  if (same(left->a, right->a)) return std::array{left->a, left->b, right->b};
  if (same(left->b, right->a)) return std::array{left->b, left->a, right->b};
  if (same(left->a, right->b)) return std::array{left->a, left->b, right->a};
  if (same(left->b, right->b)) return std::array{left->b, left->a, right->a};
  return std::nullopt;
}

// In each of these functions the first rule that fits is taken; `e` is what stays where none does.
Expr RuleRewriter::add(const Expr& e, const Expr& a, const Expr& b) {
  const Binary *sub_a = as_op(a, BinaryOp::kSub), *sub_b = as_op(b, BinaryOp::kSub);
  const Binary *add_a = as_op(a, BinaryOp::kAdd), *add_b = as_op(b, BinaryOp::kAdd);
  if (sub_a && same(sub_a->b, b)) return sub_a->a;
  if (sub_b && same(sub_b->b, a)) return sub_b->a;
  if (sub_a && sub_b && same(sub_a->b, sub_b->a)) return sub_a->a - sub_b->b;
  if (sub_a && sub_b && same(sub_a->a, sub_b->b)) return sub_b->a - sub_a->b;
  const auto c_a = add_a ? int_of(add_a->b) : std::nullopt, c_b = int_of(b);
  if (c_a && c_b) return add_a->a + Expr(*c_a + *c_b);
  if (same(a, b)) return a * Expr(2);
  if (const auto f = shared_factor(a, b)) return (*f)[0] * ((*f)[1] + (*f)[2]);
  const auto scaled_a = as_scaled(a), scaled_b = as_scaled(b);
  const auto quotient = scaled_a ? as_by(scaled_a->x, BinaryOp::kFloorDiv) : std::nullopt;
  const auto rest_b = as_by(b, BinaryOp::kFloorMod), rest_a = as_by(a, BinaryOp::kFloorMod);
  // (x // c) * c + x % c is x.
  if (quotient && rest_b && quotient->c == scaled_a->c && rest_b->c == quotient->c &&
      same(quotient->x, rest_b->x)) {
    return quotient->x;
  }
  if (sub_b && int_of(sub_b->a)) return again((a - sub_b->b) + sub_b->a);
  if (sub_a && int_of(sub_a->a)) return again((b - sub_a->b) + sub_a->a);
  if (c_a) return again((add_a->a + b) + Expr(*c_a));
  if (add_b && int_of(add_b->a)) return again((a + add_b->b) + add_b->a);
  if (rest_a && scaled_b && rest_a->c == scaled_b->c) return again(b + a);
  return e;
}

Expr RuleRewriter::sub(const Expr& e, const Expr& a, const Expr& b) {
  const Binary *add_a = as_op(a, BinaryOp::kAdd), *add_b = as_op(b, BinaryOp::kAdd);
  const Binary* sub_b = as_op(b, BinaryOp::kSub);
  if (add_a && same(add_a->b, b)) return add_a->a;
  if (add_a && same(add_a->a, b)) return add_a->b;
  if (add_b && same(add_b->b, a)) return Expr(0) - add_b->a;
  if (add_b && same(add_b->a, a)) return Expr(0) - add_b->b;
  if (same(a, b)) return Expr(0);
  if (const auto f = shared_factor(a, b)) return (*f)[0] * ((*f)[1] - (*f)[2]);
  const auto c_a = add_a ? int_of(add_a->b) : std::nullopt, c_b = int_of(b);
  if (c_a && c_b) return add_a->a + Expr(*c_a - *c_b);
  if (add_a && add_b) {
    if (same(add_a->a, add_b->a)) return add_a->b - add_b->b;
    if (same(add_a->a, add_b->b)) return add_a->b - add_b->a;
    if (same(add_a->b, add_b->b)) return add_a->a - add_b->a;
    if (same(add_a->b, add_b->a)) return add_a->a - add_b->b;
  }
  if (c_b) return a + Expr(-*c_b);
  if (c_a) return again((add_a->a - b) + Expr(*c_a));
  if (sub_b) return again((a + sub_b->b) - sub_b->a);
  if (const auto scaled = as_scaled(b)) return again(a + scaled->x * Expr(-scaled->c));
  return e;
}

Expr RuleRewriter::mul(const Expr& e, const Expr& a, const Expr& b) {
  const auto c_b = int_of(b);
  const Binary* add_a = as_op(a, BinaryOp::kAdd);
  const auto c_a = add_a ? int_of(add_a->b) : std::nullopt;
  if (c_a && c_b) return add_a->a * b + Expr(*c_a * *c_b);
  if (const auto scaled = as_scaled(a); scaled && c_b) return scaled->x * Expr(scaled->c * *c_b);
  if (int_of(a)) return again(b * a);
  const Binary* sub_a = as_op(a, BinaryOp::kSub);
  if (sub_a && c_b && *c_b < 0) return again((sub_a->b - sub_a->a) * Expr(-*c_b));
  return e;
}

Expr RuleRewriter::div(const Expr& e, const Expr& a, const Expr& b) {
  const auto c = int_of(b);
  if (!c || *c <= 0) return e;
  const auto by = [&](const Expr& x) { return floor_div(x, b); };
  const auto multiple = [&](const Expr& x) -> std::optional<Expr> {  // x / c, where c divides it
    const auto scaled = as_scaled(x);
    if (!scaled || scaled->c % *c != 0) return std::nullopt;
    return scaled->x * Expr(scaled->c / *c);
  };
  if (const auto inner = as_by(a, BinaryOp::kFloorDiv); inner && inner->c > 0) {
    return floor_div(inner->x, Expr(inner->c * *c));
  }
  const Binary* sum = as_op(a, BinaryOp::kAdd);
  const auto c_sum = sum ? int_of(sum->b) : std::nullopt;
  // (x // a + d) // c is (x + a * d) // (a * c).
  if (const auto inner = sum ? as_by(sum->a, BinaryOp::kFloorDiv) : std::nullopt; inner && c_sum) {
    return floor_div(inner->x + Expr(inner->c * *c_sum), Expr(inner->c * *c));
  }
  if (const auto scaled = as_scaled(a); scaled && scaled->c > 0) {
    if (scaled->c % *c == 0) return scaled->x * Expr(scaled->c / *c);
    if (*c % scaled->c == 0) return floor_div(scaled->x, Expr(*c / scaled->c));
  }
  if (!sum) return e;
  if (const auto part = multiple(sum->a)) return *part + by(sum->b);
  if (const auto part = multiple(sum->b)) return by(sum->a) + *part;
  if (const Binary* left = as_op(sum->a, BinaryOp::kAdd)) {
    if (const auto part = multiple(left->a)) return *part + by(left->b + sum->b);
    if (const auto part = multiple(left->b)) return *part + by(left->a + sum->b);
  }
  if (const Binary* left = as_op(sum->a, BinaryOp::kSub)) {
    if (const auto part = multiple(left->a)) return *part + by(sum->b - left->b);
  }
  if (c_sum && *c_sum % *c == 0) return by(sum->a) + Expr(*c_sum / *c);
  return e;
}

Expr RuleRewriter::mod(const Expr& e, const Expr& a, const Expr& b) {
  const auto c = int_of(b);
  if (!c || *c <= 0) return e;
  const auto multiple = [&](const Expr& x) {
    const auto scaled = as_scaled(x);
    return scaled && scaled->c % *c == 0;
  };
  if (multiple(a)) return Expr(0);
  if (const Binary* sum = as_op(a, BinaryOp::kAdd)) {
    if (multiple(sum->a)) return floor_mod(sum->b, b);
    const auto c_sum = int_of(sum->b);
    if ((c_sum && *c_sum % *c == 0) || multiple(sum->b)) return floor_mod(sum->a, b);
  }
  // All values of `a` leave the same remainder where c divides its stride.
  const auto [stride, base] = residue(a);
  return stride % *c == 0 ? Expr(floor_mod(base, *c)) : e;
}

Expr RuleRewriter::extremum(const Expr& e, const Binary& node) {
  if (same(node.a, node.b)) return node.a;
  const Range a = bound(node.a), b = bound(node.b);
  const bool min = node.op == BinaryOp::kMin;
  if (min ? a.second <= b.first : a.first >= b.second) return node.a;
  if (min ? b.second <= a.first : b.first >= a.second) return node.b;
  return e;
}

Expr RuleRewriter::equal(const Expr& e, const Expr& a, const Expr& b) {
  const Order order = compare(a - b, 0);
  if (order == Order::kEqual) return bool_imm(true);
  const bool never = order == Order::kNot || order == Order::kGreater || order == Order::kLess;
  return never ? bool_imm(false) : e;
}

Expr RuleRewriter::less(const Expr& e, const Expr& a, const Expr& b) {
  const Order order = compare(a - b, 0);
  if (order == Order::kLess) return bool_imm(true);
  const bool never =
      order == Order::kEqual || order == Order::kGreater || order == Order::kGreaterEqual;
  if (never) return bool_imm(false);
  const auto lt = [](const Expr& x, const Expr& y) { return binary(BinaryOp::kLt, x, y); };
  const Binary *add_a = as_op(a, BinaryOp::kAdd), *add_b = as_op(b, BinaryOp::kAdd);
  if (add_a && add_b) {
    if (same(add_a->a, add_b->a)) return lt(add_a->b, add_b->b);
    if (same(add_a->a, add_b->b)) return lt(add_a->b, add_b->a);
    if (same(add_a->b, add_b->a)) return lt(add_a->a, add_b->b);
    if (same(add_a->b, add_b->b)) return lt(add_a->a, add_b->a);
  }
  if (add_b && same(add_b->a, a)) return lt(Expr(0), add_b->b);
  if (add_b && same(add_b->b, a)) return lt(Expr(0), add_b->a);
  if (const auto c = int_of(a)) return constant_less(e, *c, b);
  const auto scaled_a = as_scaled(a), scaled_b = as_scaled(b);
  if (scaled_a && scaled_b && scaled_a->c == scaled_b->c && scaled_a->c > 0) {
    return lt(scaled_a->x, scaled_b->x);
  }
  if (const auto c = int_of(b)) return less_constant(e, a, *c);
  const Binary* sub_b = as_op(b, BinaryOp::kSub);
  if (sub_b && int_of(sub_b->a)) return again(lt(a + sub_b->b, sub_b->a));
  if (add_b && int_of(add_b->a)) return again(lt(a - add_b->b, add_b->a));
  return e;
}

// x * s < c is x < ceil(c / s), x // s < c is x < s * c.
Expr RuleRewriter::less_constant(const Expr& e, const Expr& a, int64_t c) {
  const auto lt = [](const Expr& x, int64_t y) { return binary(BinaryOp::kLt, x, Expr(y)); };
  if (const auto scaled = as_scaled(a); scaled && scaled->c > 0) {
    return lt(scaled->x, c > 0 ? (c - 1) / scaled->c + 1 : c / scaled->c);
  }
  if (const auto quotient = as_by(a, BinaryOp::kFloorDiv); quotient && quotient->c > 0) {
    return lt(quotient->x, quotient->c * c);
  }
  const Binary *add_a = as_op(a, BinaryOp::kAdd), *sub_a = as_op(a, BinaryOp::kSub);
  if (add_a && int_of(add_a->b)) return again(lt(add_a->a, c - *int_of(add_a->b)));
  if (sub_a && int_of(sub_a->b)) return again(lt(sub_a->a, c + *int_of(sub_a->b)));
  return e;
}

// c < x * s is floor(c / s) < x, c < x // s is (c + 1) * s - 1 < x.
Expr RuleRewriter::constant_less(const Expr& e, int64_t c, const Expr& b) {
  const auto lt = [](int64_t x, const Expr& y) { return binary(BinaryOp::kLt, Expr(x), y); };
  const Binary *add_b = as_op(b, BinaryOp::kAdd), *sub_b = as_op(b, BinaryOp::kSub);
  if (add_b && int_of(add_b->b)) return lt(c - *int_of(add_b->b), add_b->a);
  if (sub_b && int_of(sub_b->a)) {
    return binary(BinaryOp::kLt, sub_b->b, Expr(*int_of(sub_b->a) - c));
  }
  if (const auto scaled = as_scaled(b); scaled && scaled->c > 0) {
    return lt(c < 0 ? (c + 1) / scaled->c - 1 : c / scaled->c, scaled->x);
  }
  if (const auto quotient = as_by(b, BinaryOp::kFloorDiv); quotient && quotient->c > 0) {
    return lt((c + 1) * quotient->c - 1, quotient->x);
  }
  return e;
}

Expr RuleRewriter::negation(const Expr& e, const Expr& a) {
  if (const auto known = int_of(a)) return bool_imm(*known == 0);
  if (const Expr* inner = as_not(a)) return *inner;
  const auto* node = as<Binary>(a);
  if (!node) return logical_not(a);
  switch (node->op) {
    case BinaryOp::kLe: return binary(BinaryOp::kLt, node->b, node->a);
    case BinaryOp::kGe: return binary(BinaryOp::kLt, node->a, node->b);
    case BinaryOp::kLt: return binary(BinaryOp::kLe, node->b, node->a);
    case BinaryOp::kGt: return binary(BinaryOp::kLe, node->a, node->b);
    case BinaryOp::kEq: return binary(BinaryOp::kNe, node->a, node->b);
    case BinaryOp::kNe: return binary(BinaryOp::kEq, node->a, node->b);
    case BinaryOp::kOr: return again(logical_not(node->a) && logical_not(node->b));
    case BinaryOp::kAnd:
      return again(binary(BinaryOp::kOr, logical_not(node->a), logical_not(node->b)));
    default: return e;
  }
}

}  // namespace pruner::ansor
