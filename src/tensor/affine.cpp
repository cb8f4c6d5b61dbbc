#include "tensor/affine.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "support/check.h"

namespace pruner {
namespace {

int64_t floor_quotient(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

// Everything beyond kUnbounded is kUnbounded.
int64_t clamp(__int128 value) {
  return static_cast<int64_t>(
      std::clamp(value, __int128{kUnbounded.first}, __int128{kUnbounded.second}));
}

bool bounded(Range r) { return r.first > kUnbounded.first && r.second < kUnbounded.second; }

Range operator+(Range a, Range b) {
  return {clamp(__int128{a.first} + b.first), clamp(__int128{a.second} + b.second)};
}

Range operator*(Range a, Range b) {
  const __int128 corners[] = {__int128{a.first} * b.first,
                              __int128{a.first} * b.second,
                              __int128{a.second} * b.first,
                              __int128{a.second} * b.second};
  const auto [low, high] = std::minmax_element(std::begin(corners), std::end(corners));
  return {clamp(*low), clamp(*high)};
}

Range floor_quotient(Range a, int64_t b) {
  Range r = {floor_quotient(a.first, b), floor_quotient(a.second, b)};
  if (a.first <= kUnbounded.first) r.first = kUnbounded.first;
  if (a.second >= kUnbounded.second) r.second = kUnbounded.second;
  return r;
}

// A linear combination of atoms: variables (ascending, first), then other expressions that are
// themselves simplified.
struct Sum {
  struct Term {
    Expr atom;
    int64_t coefficient;
  };
  std::vector<Term> terms;
  int64_t constant = 0;
};

int32_t var_of(const Expr& atom) {
  const Var* var = as<Var>(atom);
  return var ? var->id.value : -1;
}

void add(Sum& sum, const Expr& atom, int64_t coefficient) {
  if (coefficient == 0) return;
  const int32_t var = var_of(atom);
  auto place = sum.terms.end();
  for (auto it = sum.terms.begin(); it != sum.terms.end(); ++it) {
    const int32_t other = var_of(it->atom);
    if (var >= 0 ? other == var : other < 0 && structural_equal(it->atom, atom)) {
      it->coefficient += coefficient;
      if (it->coefficient == 0) sum.terms.erase(it);
      return;
    }
    if (var >= 0 && (other < 0 || other > var)) {
      place = it;
      break;
    }
  }
  sum.terms.insert(place, {atom, coefficient});
}

void add(Sum& sum, const Sum& other, int64_t factor) {
  for (const Sum::Term& term : other.terms) add(sum, term.atom, term.coefficient * factor);
  sum.constant += other.constant * factor;
}

Expr to_expr(const Sum& sum) {
  Expr result;
  const auto append = [&](const Expr& atom, int64_t coefficient) {
    const Expr magnitude = atom * Expr(coefficient < 0 ? -coefficient : coefficient);
    if (!result) {
      result = coefficient < 0 ? Expr(sum.constant) - magnitude : magnitude;
    } else {
      result = coefficient < 0 ? result - magnitude : result + magnitude;
    }
  };
  // A positive term comes first; without one the constant does: 5 - i.
  const auto positive = std::find_if(
      sum.terms.begin(), sum.terms.end(), [](const Sum::Term& t) { return t.coefficient > 0; });
  if (positive != sum.terms.end()) append(positive->atom, positive->coefficient);
  for (auto it = sum.terms.begin(); it != sum.terms.end(); ++it) {
    if (it != positive) append(it->atom, it->coefficient);
  }
  if (!result) return Expr(sum.constant);
  if (positive == sum.terms.end() || sum.constant == 0) return result;
  return sum.constant < 0 ? result - Expr(-sum.constant) : result + Expr(sum.constant);
}

class Simplifier {
 public:
  explicit Simplifier(std::span<const Range> ranges) : ranges_(ranges) {}

  Expr expr(const Expr& e) {
    if (const Expr* known = made_.find(e)) return *known;
    Expr made = e->dtype == DType::kInt64 ? to_expr(sum(e)) : structure(e);
    made_.keep(e, made);
    return made;
  }

  Range bounds(const Expr& e) {
    if (e->dtype == DType::kInt64) return bounds(sum(e));
    const int64_t* value = as_int(structure(e));
    return value ? Range{*value, *value} : Range{0, 1};
  }

 private:
  // The normal form of an int64 expression.
  Sum sum(const Expr& e) {
    if (const Sum* known = sums_.find(e)) return *known;
    Sum made = sum_of_node(e);
    sums_.keep(e, made);
    return made;
  }

  Sum sum_of_node(const Expr& e) {
    if (const int64_t* value = as_int(e)) return {{}, *value};
    if (as<Var>(e)) return {{{e, 1}}, 0};
    if (const Binary* n = as<Binary>(e)) {
      switch (n->op) {
        case BinaryOp::kAdd: return sum_of(sum(n->a), sum(n->b), 1);
        case BinaryOp::kSub: return sum_of(sum(n->a), sum(n->b), -1);
        case BinaryOp::kMul: return product(sum(n->a), sum(n->b));
        case BinaryOp::kFloorDiv:
        case BinaryOp::kFloorMod: return division(n->op, sum(n->a), sum(n->b));
        default: break;
      }
    }
    const Expr atom = structure(e);
    if (const int64_t* value = as_int(atom)) return {{}, *value};
    // min, max and select may have become one of their operands.
    const bool opaque = as<Select>(atom) || as<Load>(atom) || as<Cast>(atom) || as<Call>(atom);
    if (!opaque && !atom.same_as(e) && !is_extremum(atom)) return sum(atom);
    return {{{atom, 1}}, 0};
  }

  // Whether a - b may wrap around, so that it does not tell which is less: a value read from memory
  // may be any number.
  bool may_wrap(const Expr& a, const Expr& b) {
    return (reads(a) || reads(b)) && !(bounded(bounds(a)) && bounded(bounds(b)));
  }

  static bool reads(const Expr& e) {
    bool found = false;
    visit(e, [&](const Expr& part) { found |= as<Load>(part) != nullptr; });
    return found;
  }

  static bool is_extremum(const Expr& e) {
    const Binary* n = as<Binary>(e);
    return n && (n->op == BinaryOp::kMin || n->op == BinaryOp::kMax);
  }

  // A node that is no sum: its children simplified, and itself decided if the bounds do.
  Expr structure(const Expr& e) {
    return match(
        e->op,
        [&](const IntImm&) { return e; },
        [&](const FloatImm&) { return e; },
        [&](const Var&) { return e; },
        [&](const Binary& n) { return comparison(e, n); },
        [&](const Select& n) {
          const Expr condition = expr(n.condition);
          if (const int64_t* known = as_int(condition)) return expr(*known ? n.a : n.b);
          const Expr a = expr(n.a), b = expr(n.b);
          if (same(condition, n.condition) && same(a, n.a) && same(b, n.b)) return e;
          return structural_equal(a, b) ? a : select(condition, a, b);
        },
        [&](const Cast& n) {
          const Expr value = expr(n.value);
          if (same(value, n.value)) return e;
          return n.of_bits ? bit_cast(e->dtype, value) : cast(e->dtype, value);
        },
        [&](const Call& n) {
          const auto [args, changed] = all(n.args);
          return changed ? call(n.function, args) : e;
        },
        [&](const Load& n) {
          const auto [indices, changed] = all(n.indices);
          return changed ? load(n.tensor, indices, e->dtype) : e;
        });
  }

  Expr comparison(const Expr& e, const Binary& n) {
    const Expr a = expr(n.a), b = expr(n.b);
    if (n.op == BinaryOp::kAnd || n.op == BinaryOp::kOr) {
      const bool absorbing = n.op == BinaryOp::kOr;  // x || true is true, x && false is false
      for (const auto& [known, other] : {std::pair{a, b}, std::pair{b, a}}) {
        const int64_t* value = as_int(known);
        if (value) return (*value != 0) == absorbing ? known : other;
      }
      if (structural_equal(a, b)) return a;
    } else if (a->dtype == DType::kInt64) {
      const Range d = bounds(sum_of(sum(a), sum(b), -1));  // bounds of a - b
      const auto decided = [&](bool yes, bool no) {
        return yes || no ? int_imm(yes, DType::kBool) : Expr();
      };
      Expr known;
      switch (n.op) {
        case BinaryOp::kMin: known = d.second <= 0 ? a : d.first >= 0 ? b : Expr(); break;
        case BinaryOp::kMax: known = d.second <= 0 ? b : d.first >= 0 ? a : Expr(); break;
        case BinaryOp::kLt: known = decided(d.second < 0, d.first >= 0); break;
        case BinaryOp::kLe: known = decided(d.second <= 0, d.first > 0); break;
        case BinaryOp::kGt: known = decided(d.first > 0, d.second <= 0); break;
        case BinaryOp::kGe: known = decided(d.first >= 0, d.second < 0); break;
        case BinaryOp::kEq: known = decided(d == Range{0, 0}, d.first > 0 || d.second < 0); break;
        case BinaryOp::kNe: known = decided(d.first > 0 || d.second < 0, d == Range{0, 0}); break;
        default: break;
      }
      if (known) {
        if (!may_wrap(a, b)) return known;
      }
    }
    return same(a, n.a) && same(b, n.b) ? e : binary(n.op, a, b);
  }

  // Rewriting to the same text is no change: what does not change stays shared.
  static bool same(const Expr& a, const Expr& b) { return a.same_as(b) || structural_equal(a, b); }

  std::pair<std::vector<Expr>, bool> all(const std::vector<Expr>& exprs) {
    std::vector<Expr> result;
    bool changed = false;
    for (const Expr& e : exprs) {
      result.push_back(expr(e));
      changed |= !same(result.back(), e);
    }
    return {result, changed};
  }

  Sum sum_of(Sum a, const Sum& b, int64_t factor) {
    add(a, b, factor);
    rejoin(a);
    return a;
  }

  // k*c*(x//c) + k*(x%c) is k*x.
  void rejoin(Sum& sum) {
    for (const Sum::Term& mod : sum.terms) {
      const Binary* m = as<Binary>(mod.atom);
      if (!m || m->op != BinaryOp::kFloorMod) continue;
      const int64_t* c = as_int(m->b);
      for (const Sum::Term& div : sum.terms) {
        const Binary* d = as<Binary>(div.atom);
        if (!c || !d || d->op != BinaryOp::kFloorDiv) continue;
        if (div.coefficient != mod.coefficient * *c || !structural_equal(m->a, d->a) ||
            !structural_equal(m->b, d->b)) {
          continue;
        }
        const Sum::Term whole = mod, quotient = div;
        const Expr x = m->a;
        add(sum, whole.atom, -whole.coefficient);
        add(sum, quotient.atom, -quotient.coefficient);
        add(sum, this->sum(x), whole.coefficient);
        return rejoin(sum);
      }
    }
  }

  Sum product(const Sum& a, const Sum& b) {
    Sum result;
    if (b.terms.empty()) {
      add(result, a, b.constant);
    } else if (a.terms.empty()) {
      add(result, b, a.constant);
    } else {
      add(result, to_expr(a) * to_expr(b), 1);
    }
    return result;
  }

  // The terms of `sum` whose coefficients are multiples of g, divided by g, and the others. The
  // constant goes to the others but for whole multiples of g: 0 <= rest.constant < g.
  static std::pair<Sum, Sum> split(const Sum& sum, int64_t g) {
    Sum multiple, rest;
    for (const Sum::Term& t : sum.terms) {
      const bool divisible = t.coefficient % g == 0;
      (divisible ? multiple : rest)
          .terms.push_back({t.atom, divisible ? t.coefficient / g : t.coefficient});
    }
    multiple.constant = floor_quotient(sum.constant, g);
    rest.constant = sum.constant - multiple.constant * g;
    return {multiple, rest};
  }

  Sum division(BinaryOp op, const Sum& a, const Sum& b) {
    const bool div = op == BinaryOp::kFloorDiv;
    if (!b.terms.empty() || b.constant <= 0) return {{{binary(op, to_expr(a), to_expr(b)), 1}}, 0};
    const int64_t c = b.constant;
    const auto [whole, rest] = split(a, c);  // a = c*whole + rest
    Sum part = division_of_rest(op, rest, c);
    if (div) part = sum_of(part, whole, 1);
    return part;
  }

  // rest // c or rest % c. With a divisor g of c such that rest = g*x + y and floor(y/g) is one
  // constant k: rest // c = (x + k) // (c/g), rest % c = g * ((x + k) % (c/g)) + y - g*k.
  Sum division_of_rest(BinaryOp op, const Sum& rest, int64_t c) {
    const bool div = op == BinaryOp::kFloorDiv;
    std::vector<int64_t> divisors = {c};
    for (const Sum::Term& t : rest.terms) divisors.push_back(std::gcd(t.coefficient, c));
    std::sort(divisors.rbegin(), divisors.rend());
    for (const int64_t g : divisors) {
      if (g == 1) break;
      auto [x, y] = split(rest, g);
      const Range k = floor_quotient(bounds(y), g);
      if (k.first != k.second || !bounded(k)) continue;
      x.constant += k.first;
      Sum inner = c == g ? Sum{} : division(op, x, {{}, c / g});
      if (div) return c == g ? x : inner;
      y.constant -= g * k.first;
      return sum_of(y, inner, g);
    }
    // x//a//c is x//(a*c).
    if (div && rest.constant == 0 && rest.terms.size() == 1 && rest.terms[0].coefficient == 1) {
      const Binary* n = as<Binary>(rest.terms[0].atom);
      if (n && n->op == BinaryOp::kFloorDiv && as_int(n->b)) {
        return division(op, sum(n->a), {{}, *as_int(n->b) * c});
      }
    }
    return {{{binary(op, to_expr(rest), Expr(c)), 1}}, 0};
  }

  // Returns the bounds of a sum. Terms min(p, q) are split one by one. x + min(p, q) is the least
  // of x + p and x + q, in which x and p may cancel out. At most three extrema are split, as each
  // split doubles the work.
  Range bounds(const Sum& sum, int extrema_to_split = 3) {
    Range result = {sum.constant, sum.constant};
    for (const Sum::Term& t : sum.terms) {
      result = result + atom_bounds(t.atom) * Range{t.coefficient, t.coefficient};
    }
    if (extrema_to_split == 0 || sum.terms.size() < 2) return result;
    for (const Sum::Term& t : sum.terms) {
      if (!is_extremum(t.atom)) continue;
      const Binary& n = *as<Binary>(t.atom);
      const auto with = [&](const Expr& operand) {
        Sum other = sum;
        add(other, t.atom, -t.coefficient);
        return bounds(sum_of(other, this->sum(operand), t.coefficient), extrema_to_split - 1);
      };
      const Range a = with(n.a), b = with(n.b);
      const bool least = (n.op == BinaryOp::kMin) == (t.coefficient > 0);
      const Range split = least ? Range{std::min(a.first, b.first), std::min(a.second, b.second)}
                                : Range{std::max(a.first, b.first), std::max(a.second, b.second)};
      return {std::max(result.first, split.first), std::min(result.second, split.second)};
    }
    return result;
  }

  Range atom_bounds(const Expr& atom) {
    return match(
        atom->op,
        [](const IntImm& n) {
          return Range{n.value, n.value};
        },
        [](const FloatImm&) { return kUnbounded; },
        [&](const Var& n) {
          return static_cast<size_t>(n.id.value) < ranges_.size() ? ranges_[n.id.value]
                                                                  : kUnbounded;
        },
        [&](const Binary& n) { return binary_bounds(n); },
        [&](const Select& n) {
          const Range a = bounds(n.a), b = bounds(n.b);
          return Range{std::min(a.first, b.first), std::max(a.second, b.second)};
        },
        [&](const Cast& n) {
          return n.value->dtype == DType::kBool ? Range{0, 1} : kUnbounded;
        },
        [](const Call&) { return kUnbounded; },
        [](const Load&) { return kUnbounded; });
  }

  Range binary_bounds(const Binary& n) {
    const Range a = bounds(n.a), b = bounds(n.b);
    switch (n.op) {
      case BinaryOp::kMul: return a * b;
      case BinaryOp::kMin: return {std::min(a.first, b.first), std::min(a.second, b.second)};
      case BinaryOp::kMax: return {std::max(a.first, b.first), std::max(a.second, b.second)};
      case BinaryOp::kFloorDiv: {
        if (b.first <= 0 || !bounded(b)) return kUnbounded;
        const Range by_least = floor_quotient(a, b.first), by_most = floor_quotient(a, b.second);
        return {std::min(by_least.first, by_most.first), std::max(by_least.second, by_most.second)};
      }
      case BinaryOp::kFloorMod: {
        if (b.first != b.second || b.first <= 0) return kUnbounded;
        const Range q = floor_quotient(a, b.first);
        if (q.first != q.second || !bounded(q)) return {0, b.first - 1};
        return {a.first - q.first * b.first, a.second - q.first * b.first};
      }
      case BinaryOp::kXor: return bounds_of_xor(a, b);
      default: return kUnbounded;
    }
  }

  std::span<const Range> ranges_;
  NodeMemo<Expr> made_;
  NodeMemo<Sum> sums_;
};

}  // namespace

int64_t Affine::coefficient(VarId var) const {
  for (const auto& [id, value] : terms) {
    if (id == var) return value;
  }
  return 0;
}

std::optional<Affine> to_affine(const Expr& e) {
  if (e->dtype != DType::kInt64) return std::nullopt;
  if (const int64_t* value = as_int(e)) return Affine{{}, *value};
  if (const Var* var = as<Var>(e)) return Affine{{{var->id, 1}}, 0};
  const Binary* n = as<Binary>(e);
  if (!n || (n->op != BinaryOp::kAdd && n->op != BinaryOp::kSub && n->op != BinaryOp::kMul)) {
    return std::nullopt;
  }
  const std::optional<Affine> a = to_affine(n->a), b = to_affine(n->b);
  if (!a || !b) return std::nullopt;
  if (n->op == BinaryOp::kMul && !a->terms.empty() && !b->terms.empty()) return std::nullopt;
  const bool scaled = n->op == BinaryOp::kMul;
  const int64_t factor_a = scaled && a->terms.empty() ? 0 : scaled ? b->constant : 1;
  const int64_t factor_b =
      scaled ? (a->terms.empty() ? a->constant : 0) : (n->op == BinaryOp::kSub ? -1 : 1);
  Affine result{{}, a->constant * factor_a + b->constant * factor_b};
  const auto append = [&](std::pair<VarId, int64_t> term) {
    if (term.second != 0) result.terms.push_back(term);
  };
  auto i = a->terms.begin(), j = b->terms.begin();
  while (i != a->terms.end() || j != b->terms.end()) {
    const bool left = j == b->terms.end() || (i != a->terms.end() && i->first <= j->first);
    const bool right = i == a->terms.end() || (j != b->terms.end() && j->first <= i->first);
    append({left ? i->first : j->first,
            (left ? i->second * factor_a : 0) + (right ? j->second * factor_b : 0)});
    if (left) ++i;
    if (right) ++j;
  }
  return result;
}

Expr to_expr(const Affine& affine, const std::function<std::string(VarId)>& var_name) {
  Sum sum{{}, affine.constant};
  for (const auto& [var, coefficient] : affine.terms) {
    sum.terms.push_back({make_var(var, var_name(var)), coefficient});
  }
  return to_expr(sum);
}

Expr simplify(const Expr& e, std::span<const Range> ranges) { return Simplifier(ranges).expr(e); }

Range bounds(const Expr& e, std::span<const Range> ranges) { return Simplifier(ranges).bounds(e); }

Range bounds_of_xor(Range a, Range b) {
  if (a.first < 0 || b.first < 0 || !bounded(a) || !bounded(b)) return kUnbounded;
  const auto most = static_cast<uint64_t>(std::max(a.second, b.second));
  return {0, static_cast<int64_t>(std::bit_ceil(most + 1)) - 1};
}

bool is_multiple(const Expr& e, int64_t divisor, std::span<const Expr> lets) {
  if (divisor == 1) return true;
  const auto both = [&](const Expr& a, const Expr& b) {
    return is_multiple(a, divisor, lets) && is_multiple(b, divisor, lets);
  };
  if (const int64_t* value = as_int(e)) return *value % divisor == 0;
  if (const Var* var = as<Var>(e)) {
    const auto at = static_cast<size_t>(var->id.value);
    return at < lets.size() && static_cast<bool>(lets[at]) && is_multiple(lets[at], divisor, lets);
  }
  if (const Select* n = as<Select>(e)) return both(n->a, n->b);
  const Binary* n = as<Binary>(e);
  if (!n) return false;
  switch (n->op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
    case BinaryOp::kMin:
    case BinaryOp::kMax: return both(n->a, n->b);
    case BinaryOp::kXor: return (divisor & (divisor - 1)) == 0 && both(n->a, n->b);
    case BinaryOp::kFloorMod: {
      const int64_t* modulus = as_int(n->b);
      return modulus && *modulus % divisor == 0 && is_multiple(n->a, divisor, lets);
    }
    case BinaryOp::kMul:
      for (const auto& [factor, other] : {std::pair{n->a, n->b}, std::pair{n->b, n->a}}) {
        const int64_t* k = as_int(factor);
        if (k && *k != 0 && is_multiple(other, divisor / std::gcd(divisor, *k), lets)) return true;
      }
      return is_multiple(n->a, divisor, lets) || is_multiple(n->b, divisor, lets);
    default: return false;
  }
}

}  // namespace pruner
