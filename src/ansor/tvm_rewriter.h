// Declares the class that the parts of TvmSimplifier share: one pass over an expression, its rules
// (tvm_rules.cpp) and its canonical sums (tvm_canonical.cpp). Only these parts include this header.
#pragma once

#include <algorithm>
#include <optional>
#include <variant>

#include "ansor/tvm_simplify.h"

namespace pruner::ansor {

inline constexpr int64_t kInfinity = int64_t{1} << 60;  // no bound

inline bool is_index(const Expr& e) {
  return e->dtype == DType::kInt64 || e->dtype == DType::kInt32;
}

inline Expr bool_imm(bool value) { return int_imm(value, DType::kBool); }

inline const Binary* as_op(const Expr& e, BinaryOp op) {
  const auto* node = as<Binary>(e);
  return node && node->op == op ? node : nullptr;
}

inline std::optional<int64_t> int_of(const Expr& e) {
  const int64_t* value = as_int(e);
  return value ? std::optional(*value) : std::nullopt;
}

inline bool same(const Expr& a, const Expr& b) { return a.same_as(b) || structural_equal(a, b); }

inline Expr logical_not(const Expr& e) { return call(Intrinsic::kNot, {e}); }

inline const Expr* as_not(const Expr& e) {
  const auto* node = as<Call>(e);
  return node && node->function == Intrinsic::kNot ? &node->args[0] : nullptr;
}

inline int64_t saturated(__int128 value) {
  return value > kInfinity    ? kInfinity
         : value < -kInfinity ? -kInfinity
                              : static_cast<int64_t>(value);
}

// x * c, if e is that; a plain x is not.
struct Scaled {
  Expr x;
  int64_t c;
};
inline std::optional<Scaled> as_scaled(const Expr& e) {
  const Binary* mul = as_op(e, BinaryOp::kMul);
  const auto c = mul ? int_of(mul->b) : std::nullopt;
  return c ? std::optional(Scaled{mul->a, *c}) : std::nullopt;
}
// floordiv(x, c) or floormod(x, c).
inline std::optional<Scaled> as_by(const Expr& e, BinaryOp op) {
  const Binary* node = as_op(e, op);
  const auto c = node ? int_of(node->b) : std::nullopt;
  return c ? std::optional(Scaled{node->a, *c}) : std::nullopt;
}

// TVM's SplitExpr:
// ((index % upper) / lower) * scale; an upper of kInfinity: no remainder.
struct SplitTerm {
  Expr index;
  int64_t lower = 1, upper = kInfinity, scale = 1;

  Expr normal(int64_t sign = 1) const {
    if (scale == 0) return Expr(0);
    Expr e = index;
    if (upper != kInfinity) e = floor_mod(e, Expr(upper));
    if (lower != 1) e = floor_div(e, Expr(lower));
    return scale * sign != 1 ? e * Expr(scale * sign) : e;
  }
};

// TVM's SumExpr: the terms' sum plus `base`.
// Terms with one index stand together, the larger divisor first.
struct SumForm {
  std::vector<SplitTerm> terms;
  int64_t base = 0;

  bool is_zero() const { return base == 0 && terms.empty(); }
  void multiply(int64_t scale) {
    base *= scale;
    for (SplitTerm& term : terms) term.scale *= scale;
  }
  void divide(int64_t scale) {
    base /= scale;
    for (SplitTerm& term : terms) term.scale /= scale;
  }
  void add(SplitTerm other, int64_t scale) {
    if (other.scale == 0) return;
    other.scale *= scale;
    auto at =
        std::ranges::find_if(terms, [&](const auto& t) { return same(t.index, other.index); });
    for (; at != terms.end(); ++at) {
      if (!same(at->index, other.index) || other.lower > at->lower) {
        terms.insert(at, other);
        return;
      }
      if (other.lower == at->lower && other.upper == at->upper) {
        at->scale += other.scale;
        return;
      }
    }
    terms.push_back(std::move(other));
  }
  void add(const SumForm& other, int64_t scale) {
    for (const SplitTerm& term : other.terms) add(term, scale);
    base += other.base * scale;
  }
  Expr normal() const;
};

using Canonical = std::variant<Expr, SplitTerm, SumForm>;

// TVM's RewriteSimplifier or, where `canonical`, its CanonicalSimplifier.
// One pass over an expression: by the rules alone, or with sums in canonical form.
class RuleRewriter {
 public:
  RuleRewriter(const TvmSimplifier& known, bool canonical) : known_(known), canonical_(canonical) {}

  Expr visit(const Expr& e);
  /// The same, from what the expression became before where that is known.
  Expr remembered(const Expr& e);

 private:
  enum class Order : uint8_t { kUnknown, kEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kNot };

  // bound() to at_least() say what is known of a value.
  Range bound(const Expr& e) const;  // with the conditions that hold
  Range bound_as_written(const Expr& e) const;
  std::pair<int64_t, int64_t> residue(const Expr& e) const;  // stride (0: one value), base
  Order compare(const Expr& e, int64_t value);               // TVM's TryCompare
  bool at_least(const Expr& e, int64_t value) const {
    if (const auto known = int_of(e)) return *known >= value;
    return bound(RuleRewriter(known_, false).twice(e)).first >= value;
  }
  // TVM applies its rules to a whole expression until nothing changes, twice at most.
  Expr twice(const Expr& e) {
    const Expr once = visit(e);
    return once.same_as(e) ? e : visit(once);
  }

  // The result of a rule, rewritten by further ones; at kMaxDepth (TVM's kMaxRecurDepth) as it is.
  Expr again(const Expr& e) {
    if (depth_ >= kMaxDepth) return e;
    ++depth_;
    Expr made = visit(e);
    --depth_;
    return made;
  }

  Expr rewritten(const Expr& e);
  Expr rewritten_binary(const Expr& e, const Binary& node);
  Expr rewritten_select(const Expr& e, const Select& node);
  Expr rule(const Expr& e, const Binary& node);
  Expr add(const Expr& e, const Expr& a, const Expr& b);
  Expr sub(const Expr& e, const Expr& a, const Expr& b);
  Expr mul(const Expr& e, const Expr& a, const Expr& b);
  Expr div(const Expr& e, const Expr& a, const Expr& b);
  Expr mod(const Expr& e, const Expr& a, const Expr& b);
  Expr extremum(const Expr& e, const Binary& node);
  Expr equal(const Expr& e, const Expr& a, const Expr& b);
  Expr less(const Expr& e, const Expr& a, const Expr& b);
  Expr less_constant(const Expr& e, const Expr& a, int64_t c);
  Expr constant_less(const Expr& e, int64_t c, const Expr& b);
  Expr negation(const Expr& e, const Expr& a);

  Canonical mutate(const Expr& e);
  Canonical canonical_sum(const Binary& node, int64_t sign);
  Canonical canonical_mul(const Expr& e, const Binary& node);
  Canonical canonical_div(const Expr& e, const Binary& node);
  Canonical canonical_mod(const Expr& e, const Binary& node);
  SplitTerm divided(SplitTerm term, int64_t c);
  SplitTerm remainder(SplitTerm term, int64_t c);

  static constexpr int kMaxDepth = 5;  // greatest depth of rewriting a rule's result again

  const TvmSimplifier& known_;
  bool canonical_;
  int depth_ = 0;
};

}  // namespace pruner::ansor
