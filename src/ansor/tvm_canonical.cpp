// The canonical form of index arithmetic: a sum of scaled terms ((x % u) / l) * s.
#include <tuple>

#include "ansor/tvm_rewriter.h"
#include "support/match.h"

namespace pruner::ansor {

// (x / (c * s)) * s + (x % (c * s)) / c is x / c: neighbours with one index merge.
static std::vector<SplitTerm> merged(std::vector<SplitTerm> terms) {
  for (size_t i = 0; i < terms.size(); ++i) {
    if (terms[i].scale == 0) continue;
    for (size_t j = i + 1; j < terms.size(); ++j) {
      SplitTerm &left = terms[i], &right = terms[j];
      if (!same(left.index, right.index) || left.upper < right.lower) break;
      if (left.upper == right.upper && left.lower == right.lower) {
        right.scale += left.scale;
        left.scale = 0;
      } else if (left.lower == right.upper && right.scale != 0 && left.scale % right.scale == 0 &&
                 left.lower == left.scale / right.scale * right.lower) {
        right.upper = left.upper;
        left.scale = 0;
        break;
      }
    }
  }
  std::ranges::stable_sort(terms, [](const SplitTerm& a, const SplitTerm& b) {
    return std::tuple(a.scale, a.lower, a.upper) > std::tuple(b.scale, b.lower, b.upper);
  });
  return terms;
}

Expr SumForm::normal() const {
  if (terms.empty()) return Expr(base);
  Expr sum(0);
  const std::vector<SplitTerm> sorted = merged(terms);
  for (const SplitTerm& term : sorted) {
    if (term.scale > 0) sum = sum + term.normal();
  }
  if (base > 0) sum = sum + Expr(base);
  for (const SplitTerm& term : sorted) {
    if (term.scale < 0) sum = sum - term.normal(-1);
  }
  return base < 0 ? sum - Expr(-base) : sum;
}

namespace {

Expr normal(const Canonical& form) {
  return match(
      form,  //
      [](const Expr& e) { return e; },
      [](const SplitTerm& term) { return term.normal(); },
      [](const SumForm& sum) { return sum.normal(); });
}

SplitTerm to_split(const Canonical& form) {
  if (const auto* term = std::get_if<SplitTerm>(&form)) return *term;
  const auto* sum = std::get_if<SumForm>(&form);
  if (sum && sum->base == 0 && sum->terms.size() == 1) return sum->terms[0];
  return {normal(form)};
}

SumForm to_sum(const Canonical& form) {
  if (const auto* sum = std::get_if<SumForm>(&form)) return *sum;
  const auto* e = std::get_if<Expr>(&form);
  if (const auto value = e ? int_of(*e) : std::nullopt) return {{}, *value};
  return {{to_split(form)}, 0};
}

}  // namespace

Expr RuleRewriter::visit(const Expr& e) {
  // Quotients and remainders of one fused loop stand in many places. Deeper down a rule may stop
  // early, so what it gives there is another thing.
  const Binary* node = as<Binary>(e);
  const bool again = node && (node->op == BinaryOp::kFloorDiv || node->op == BinaryOp::kFloorMod);
  if (depth_ > 0 || !again) return canonical_ ? normal(mutate(e)) : rewritten(e);
  return remembered(e);
}

Expr RuleRewriter::remembered(const Expr& e) {
  auto& memo = known_.memo_.made[canonical_];
  if (const auto found = memo.find(&*e); found != memo.end()) return found->second.second;
  Expr made = canonical_ ? normal(mutate(e)) : rewritten(e);
  memo.emplace(&*e, std::pair(e, made));
  return made;
}

Canonical RuleRewriter::mutate(const Expr& e) {
  const auto* node = as<Binary>(e);
  if (!node || !is_index(e)) return rewritten(e);
  switch (node->op) {
    case BinaryOp::kAdd: return canonical_sum(*node, 1);
    case BinaryOp::kSub: return canonical_sum(*node, -1);
    case BinaryOp::kMul: return canonical_mul(e, *node);
    case BinaryOp::kFloorDiv: return canonical_div(e, *node);
    case BinaryOp::kFloorMod: return canonical_mod(e, *node);
    default: return rewritten(e);
  }
}

static std::optional<int64_t> int_of(const Canonical& form) {
  const auto* e = std::get_if<Expr>(&form);
  return e ? int_of(*e) : std::nullopt;
}

Canonical RuleRewriter::canonical_sum(const Binary& node, int64_t sign) {
  const Canonical a = mutate(node.a), b = mutate(node.b);
  const auto c_a = int_of(a), c_b = int_of(b);
  if (c_a && c_b) return Expr(*c_a + sign * *c_b);
  if (c_b == 0) return a;
  if (c_a == 0 && sign > 0) return b;
  SumForm sum = to_sum(a);
  sum.add(to_sum(b), sign);
  return sum;
}

Canonical RuleRewriter::canonical_mul(const Expr& e, const Binary& node) {
  Canonical a = mutate(node.a), b = mutate(node.b);
  if (int_of(a)) std::swap(a, b);
  const auto c = int_of(b);
  if (!c) {
    const Expr x = normal(a), y = normal(b);
    return x.same_as(node.a) && y.same_as(node.b) ? e : x * y;
  }
  if (const auto value = int_of(a)) return Expr(*value * *c);
  if (*c == 0) return Expr(0);
  if (*c == 1) return a;
  if (auto* sum = std::get_if<SumForm>(&a)) {
    sum->multiply(*c);
    return *sum;
  }
  SplitTerm term = to_split(a);
  term.scale *= *c;
  return term;
}

// Splits `sum` into the terms that `c` divides and the rest (TVM's SeparateDivisibleParts).
static std::pair<SumForm, SumForm> separate(const SumForm& sum, int64_t c) {
  SumForm whole, rest;
  (sum.base % c == 0 ? whole : rest).base = sum.base;
  for (const SplitTerm& term : sum.terms) {
    (term.scale % c == 0 ? whole : rest).terms.push_back(term);
  }
  return {whole, rest};
}

Canonical RuleRewriter::canonical_div(const Expr& e, const Binary& node) {
  const Canonical a = mutate(node.a), b = mutate(node.b);
  const auto c = int_of(b);
  if (!c || *c <= 0) return e;
  if (const auto value = int_of(a)) return Expr(floor_div(*value, *c));
  if (*c == 1) return a;
  if (const auto* sum = std::get_if<SumForm>(&a)) {
    auto [whole, rest] = separate(*sum, *c);
    whole.divide(*c);
    if (rest.is_zero()) return whole;
    const Expr left = rest.normal();
    if (const auto value = int_of(left)) {
      whole.base += floor_div(*value, *c);
    } else if (!(compare(left, *c) == Order::kLess && at_least(left, 0))) {
      whole.add(divided(to_split(left), *c), 1);
    }
    return whole;
  }
  const Range range = bound(normal(a));
  if (range.first >= 0 && range.second < *c) return Expr(0);
  return divided(to_split(a), *c);
}

// term / c (TVM's SplitDivConst). Where neither of scale and c divides the other, the quotient is
// an index of its own.
SplitTerm RuleRewriter::divided(SplitTerm term, int64_t c) {
  if (term.scale % c == 0) {
    term.scale /= c;
    return term;
  }
  if (c % term.scale == 0) {
    const int64_t step = c / term.scale;
    if (term.upper != kInfinity && term.upper % (term.lower * step) != 0) {
      if (term.upper <= term.lower * step) return {Expr(0)};
      term.index = floor_mod(term.index, Expr(term.upper));
      term.upper = kInfinity;
    }
    term.scale = 1;
    term.lower *= step;
    return term;
  }
  return {term.normal(), c};
}

Canonical RuleRewriter::canonical_mod(const Expr& e, const Binary& node) {
  const Canonical a = mutate(node.a), b = mutate(node.b);
  const auto c = int_of(b);
  if (!c || *c <= 0) return e;
  if (const auto value = int_of(a)) return Expr(floor_mod(*value, *c));
  if (const auto* sum = std::get_if<SumForm>(&a)) {
    SumForm rest = separate(*sum, *c).second;
    const Expr left = rest.normal();
    if (const auto value = int_of(left)) return Expr(floor_mod(*value, *c));
    if (compare(left, *c) == Order::kLess && at_least(left, 0)) return left;
    rest.base = floor_mod(rest.base, *c);
    return remainder(to_split(rest), *c);
  }
  const Range range = bound(normal(a));
  if (range.first >= 0 && range.second < *c) return a;
  return remainder(to_split(a), *c);
}

// term % c (TVM's SplitModConst).
SplitTerm RuleRewriter::remainder(SplitTerm term, int64_t c) {
  if (term.scale % c == 0) {
    term.scale = 0;
    return term;
  }
  if (c % term.scale == 0) {
    const int64_t upper = term.lower * (c / term.scale);
    if (term.upper == kInfinity || term.upper % upper == 0) {
      if (upper < term.upper && term.upper != kInfinity) {
        SplitTerm smaller = to_split(visit(floor_mod(term.index, Expr(upper))));
        smaller.scale = term.scale;
        return term.lower != 1 ? divided(smaller, term.lower) : smaller;
      }
      term.upper = upper;
      return term;
    }
    if (upper % term.upper == 0) return term;
  }
  return {term.normal(), 1, c};
}

}  // namespace pruner::ansor
