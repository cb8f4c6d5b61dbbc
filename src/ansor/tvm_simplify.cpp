#include "ansor/tvm_simplify.h"

#include <numeric>

#include "ansor/tvm_rewriter.h"
#include "support/match.h"

namespace pruner::ansor {

Range RuleRewriter::bound(const Expr& e) const {
  Range range = bound_as_written(e);
  for (const auto& scope : known_.known_) {
    for (const auto& [expr, limits] : scope) {
      if (!same(expr, e)) continue;
      range.first = std::max(range.first, limits.first);
      range.second = std::min(range.second, limits.second);
    }
  }
  return range;
}

Range RuleRewriter::bound_as_written(const Expr& e) const {
  const Range everything{-kInfinity, kInfinity};
  if (const auto value = int_of(e)) return {*value, *value};
  if (const auto* var = as<Var>(e)) {
    const auto id = static_cast<size_t>(var->id.value);
    return id < known_.ranges_.size() ? known_.ranges_[id] : everything;
  }
  const auto* node = as<Binary>(e);
  if (!node || !is_index(e)) return everything;
  const Range a = bound(node->a), b = bound(node->b);
  const auto wide = [](int64_t x) { return static_cast<__int128>(x); };
  switch (node->op) {
    case BinaryOp::kAdd:
      return {saturated(wide(a.first) + b.first), saturated(wide(a.second) + b.second)};
    case BinaryOp::kSub:
      return {saturated(wide(a.first) - b.second), saturated(wide(a.second) - b.first)};
    case BinaryOp::kMul: {
      const auto [low, high] = std::minmax({saturated(wide(a.first) * b.first),
                                            saturated(wide(a.first) * b.second),
                                            saturated(wide(a.second) * b.first),
                                            saturated(wide(a.second) * b.second)});
      return {low, high};
    }
    case BinaryOp::kFloorDiv:
      if (b.first != b.second || b.first <= 0) return everything;
      return {a.first <= -kInfinity ? a.first : floor_div(a.first, b.first),
              a.second >= kInfinity ? a.second : floor_div(a.second, b.first)};
    case BinaryOp::kFloorMod:
      if (b.first <= 0) return everything;
      if (a.first >= 0 && a.second < b.first) return a;
      return {0, a.first >= 0 ? std::min(a.second, b.second - 1) : b.second - 1};
    case BinaryOp::kMin: return {std::min(a.first, b.first), std::min(a.second, b.second)};
    case BinaryOp::kMax: return {std::max(a.first, b.first), std::max(a.second, b.second)};
    default: return everything;
  }
}

std::pair<int64_t, int64_t> RuleRewriter::residue(const Expr& e) const {
  using Residue = std::pair<int64_t, int64_t>;
  const auto of = [](int64_t stride, int64_t base) {
    return Residue{std::abs(stride), stride == 0 ? base : floor_mod(base, std::abs(stride))};
  };
  if (const auto value = int_of(e)) return {0, *value};
  const auto* node = as<Binary>(e);
  if (!node) return {1, 0};
  const Residue a = residue(node->a), b = residue(node->b);
  switch (node->op) {
    case BinaryOp::kAdd: return of(std::gcd(a.first, b.first), a.second + b.second);
    case BinaryOp::kSub: return of(std::gcd(a.first, b.first), a.second - b.second);
    case BinaryOp::kMul:
      return of(std::gcd(a.first * b.first, std::gcd(a.first * b.second, a.second * b.first)),
                a.second * b.second);
    case BinaryOp::kFloorDiv:
      if (b.first != 0 || b.second <= 0 || a.first % b.second != 0) return {1, 0};
      return of(a.first / b.second, floor_div(a.second, b.second));
    default: return {1, 0};
  }
}

RuleRewriter::Order RuleRewriter::compare(const Expr& e, int64_t value) {
  const Expr simple = visit(e);
  const Range range = bound(simple);
  if (const auto known = int_of(simple)) {
    return *known == value ? Order::kEqual : *known > value ? Order::kGreater : Order::kLess;
  }
  if (range.first > value) return Order::kGreater;
  if (range.second < value) return Order::kLess;
  if (range.first >= value) return Order::kGreaterEqual;
  if (range.second <= value) return Order::kLessEqual;
  return value == 0 && residue(simple).second != 0 ? Order::kNot : Order::kUnknown;
}

Expr RuleRewriter::rewritten(const Expr& e) {
  return match(
      e->op,
      [&](const IntImm&) { return e; },
      [&](const FloatImm&) { return e; },
      [&](const Var& var) {
        const auto id = static_cast<size_t>(var.id.value);
        const bool one =
            id < known_.ranges_.size() && known_.ranges_[id].first == known_.ranges_[id].second;
        return one ? Expr(known_.ranges_[id].first) : e;
      },
      [&](const Binary& node) { return rewritten_binary(e, node); },
      [&](const Select& node) { return rewritten_select(e, node); },
      [&](const Cast& node) {
        return node.of_bits ? bit_cast(e->dtype, visit(node.value))
                            : cast(e->dtype, visit(node.value));
      },
      [&](const Call& node) {
        if (node.function == Intrinsic::kNot) return negation(e, visit(node.args[0]));
        std::vector<Expr> args;
        for (const Expr& arg : node.args) args.push_back(visit(arg));
        return call(node.function, std::move(args));
      },
      [&](const Load& node) {
        std::vector<Expr> indices;
        for (const Expr& index : node.indices) {
          const bool small = as<IntImm>(index) || as<Var>(index);
          indices.push_back(small || depth_ > 0 ? visit(index) : remembered(index));
        }
        return load(node.tensor, std::move(indices), e->dtype);
      });
}

Expr RuleRewriter::rewritten_binary(const Expr& e, const Binary& node) {
  switch (node.op) {
    case BinaryOp::kNe: return visit(logical_not(binary(BinaryOp::kEq, node.a, node.b)));
    case BinaryOp::kLe: return visit(logical_not(binary(BinaryOp::kLt, node.b, node.a)));
    case BinaryOp::kGt: return visit(binary(BinaryOp::kLt, node.b, node.a));
    case BinaryOp::kGe: return visit(logical_not(binary(BinaryOp::kLt, node.a, node.b)));
    default: break;
  }
  const Expr a = visit(node.a), b = visit(node.b);
  const Expr made = a.same_as(node.a) && b.same_as(node.b) ? e : binary(node.op, a, b);
  const auto* folded = as<Binary>(made);
  return folded && folded->op == node.op ? rule(made, *folded) : made;
}

Expr RuleRewriter::rewritten_select(const Expr& e, const Select& node) {
  const Expr condition = visit(node.condition);
  TvmSimplifier inside = known_;
  inside.push_condition(condition);
  TvmSimplifier outside = known_;
  outside.push_condition(RuleRewriter(known_, false).twice(logical_not(condition)));
  const Expr a = RuleRewriter(inside, canonical_).visit(node.a);
  const Expr b = RuleRewriter(outside, canonical_).visit(node.b);
  if (const auto known = int_of(condition)) return *known ? a : b;
  const bool kept = condition.same_as(node.condition) && a.same_as(node.a) && b.same_as(node.b);
  return kept ? e : select(condition, a, b);
}

void TvmSimplifier::bind(VarId var, Range range) {
  const auto id = static_cast<size_t>(var.value);
  memo_.clear();
  if (id >= ranges_.size()) ranges_.resize(id + 1, {-kInfinity, kInfinity});
  ranges_[id] = range;
}

Expr TvmSimplifier::simplify(const Expr& e) {
  if (as_int(e)) return e;
  Expr made = e;
  for (const bool canonical : {false, true}) {
    if (canonical) {
      made = RuleRewriter(*this, true).remembered(made);
      continue;
    }
    const Expr once = RuleRewriter(*this, false).remembered(made);
    made = once.same_as(made) ? made : RuleRewriter(*this, false).remembered(once);
    if (as_int(made)) return made;
  }
  return made;
}

static void note_bounds(const Expr& condition, std::vector<std::pair<Expr, Range>>& bounds) {
  const auto* node = as<Binary>(condition);
  if (!node) return;
  if (node->op == BinaryOp::kAnd) {
    note_bounds(node->a, bounds);
    note_bounds(node->b, bounds);
  }
  if (node->op != BinaryOp::kLt && node->op != BinaryOp::kLe) return;
  const int64_t strict = node->op == BinaryOp::kLt;
  if (const auto low = int_of(node->a)) {
    bounds.push_back({node->b, {*low + strict, kInfinity}});
  } else if (const auto high = int_of(node->b)) {
    bounds.push_back({node->a, {-kInfinity, *high - strict}});
  }
}

void TvmSimplifier::push_condition(const Expr& condition) {
  memo_.clear();
  known_.emplace_back();
  note_bounds(condition, known_.back());
}

void TvmSimplifier::pop_condition() {
  memo_.clear();
  known_.pop_back();
}

}  // namespace pruner::ansor
