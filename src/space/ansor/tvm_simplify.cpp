#include "space/ansor/tvm_simplify.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "support/check.h"

namespace pruner::ansor {

namespace {

constexpr int64_t kInfinity = int64_t{1} << 60;
constexpr int kMaxDepth = 5;  // of rules whose result is rewritten again

bool is_index(const Expr& e) { return e->dtype == DType::kInt64 || e->dtype == DType::kInt32; }

Expr bool_imm(bool value) { return int_imm(value, DType::kBool); }

const Binary* as_op(const Expr& e, BinaryOp op) {
  const auto* node = as<Binary>(e);
  return node && node->op == op ? node : nullptr;
}

std::optional<int64_t> int_of(const Expr& e) {
  const int64_t* value = as_int(e);
  return value ? std::optional(*value) : std::nullopt;
}

bool same(const Expr& a, const Expr& b) { return a.same_as(b) || structural_equal(a, b); }

Expr logical_not(const Expr& e) { return call(Intrinsic::kNot, {e}); }

const Expr* as_not(const Expr& e) {
  const auto* node = as<Call>(e);
  return node && node->function == Intrinsic::kNot ? &node->args[0] : nullptr;
}

int64_t saturated(__int128 value) {
  return value > kInfinity    ? kInfinity
         : value < -kInfinity ? -kInfinity
                              : static_cast<int64_t>(value);
}

// x * c, if e is that; a plain x is not.
struct Scaled {
  Expr x;
  int64_t c;
};
std::optional<Scaled> as_scaled(const Expr& e) {
  const Binary* mul = as_op(e, BinaryOp::kMul);
  const auto c = mul ? int_of(mul->b) : std::nullopt;
  return c ? std::optional(Scaled{mul->a, *c}) : std::nullopt;
}
// floordiv(x, c) or floormod(x, c).
std::optional<Scaled> as_by(const Expr& e, BinaryOp op) {
  const Binary* node = as_op(e, op);
  const auto c = node ? int_of(node->b) : std::nullopt;
  return c ? std::optional(Scaled{node->a, *c}) : std::nullopt;
}

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

// (x / (c * s)) * s + (x % (c * s)) / c is x / c: neighbours with one index merge.
std::vector<SplitTerm> merged(std::vector<SplitTerm> terms) {
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

using Canonical = std::variant<Expr, SplitTerm, SumForm>;

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

// One pass over an expression: by the rules alone, or with sums in canonical form.
class RuleRewriter {
 public:
  RuleRewriter(const TvmSimplifier& known, bool canonical) : known_(known), canonical_(canonical) {}

  Expr visit(const Expr& e) { return canonical_ ? normal(mutate(e)) : rewritten(e); }

 private:
  enum class Order : uint8_t { kUnknown, kEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kNot };

  // What is known of values.
  Range bound(const Expr& e) const;
  Range bound_as_written(const Expr& e) const;
  std::pair<int64_t, int64_t> residue(const Expr& e) const;  // stride (0: one value), base
  Order compare(const Expr& e, int64_t value);
  bool at_least(const Expr& e, int64_t value) const {
    if (const auto known = int_of(e)) return *known >= value;
    return bound(RuleRewriter(known_, false).twice(e)).first >= value;
  }
  Expr twice(const Expr& e) {
    const Expr once = visit(e);
    return once.same_as(e) ? e : visit(once);
  }

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

  const TvmSimplifier& known_;
  bool canonical_;
  int depth_ = 0;
};

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
      [&](const Cast& node) { return cast(e->dtype, visit(node.value)); },
      [&](const Call& node) {
        if (node.function == Intrinsic::kNot) return negation(e, visit(node.args[0]));
        std::vector<Expr> args;
        for (const Expr& arg : node.args) args.push_back(visit(arg));
        return call(node.function, std::move(args));
      },
      [&](const Load& node) {
        std::vector<Expr> indices;
        for (const Expr& index : node.indices) indices.push_back(visit(index));
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

// What c divides, and the rest.
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

void TvmSimplifier::bind(VarId var, Range range) {
  const auto id = static_cast<size_t>(var.value);
  if (id >= ranges_.size()) ranges_.resize(id + 1, {-kInfinity, kInfinity});
  ranges_[id] = range;
}

Expr TvmSimplifier::simplify(const Expr& e) {
  if (as_int(e)) return e;
  Expr made = e;
  for (const bool canonical : {false, true}) {
    if (canonical) {
      made = RuleRewriter(*this, true).visit(made);
      continue;
    }
    const Expr once = RuleRewriter(*this, false).visit(made);
    made = once.same_as(made) ? made : RuleRewriter(*this, false).visit(once);
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
  known_.emplace_back();
  note_bounds(condition, known_.back());
}

void TvmSimplifier::pop_condition() { known_.pop_back(); }

}  // namespace pruner::ansor
