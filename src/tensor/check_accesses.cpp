#include "tensor/check_accesses.h"

#include <algorithm>
#include <utility>

#include "tensor/affine.h"

namespace pruner {
namespace {

bool is_bounded(Range r) { return r.first > kUnbounded.first && r.second < kUnbounded.second; }
bool lies_in(Range inner, Range outer) {
  return inner.first >= outer.first && inner.second <= outer.second;
}

Range range_of(DType dtype) {
  if (is_float(dtype) || dtype_bytes(dtype) == 8) return kUnbounded;
  return {least_int(dtype), greatest_int(dtype)};
}

/// `Context` holds facts at a place of a body (expressions that are not negative) and the part of
/// the variables' ranges that the facts leave.
struct Context {
  std::vector<Expr> facts;
  std::vector<Range> ranges;
  bool impossible = false;
};

/// The reads of one stage. Index arithmetic becomes sums of variables: the stage's axes, then a
/// variable for each distinct other part, such as an element of a tensor or a quotient.
class StageAccesses {
 public:
  /// values[i] is the range of the elements of integer stage i.
  StageAccesses(const ComputeDag& dag, const Stage& stage, const std::vector<Range>& values)
      : dag_(dag), stage_(stage), values_(values) {
    for (const std::vector<Iterator>* axes : {&stage.axes, &stage.reduce_axes})
      for (const Iterator& axis : *axes) ranges_.push_back({0, axis.extent - 1});
  }

  Result<Unit> check() { return walk(stage_.body, {}); }

  /// Returns the range of the stage's elements.
  Range values() {
    const Range all = range_of(stage_.dtype);
    if (is_float(stage_.dtype) || stage_.dtype == DType::kBool) return all;
    if (stage_.combiner == Combiner::kSum || stage_.combiner == Combiner::kProd) return all;
    const Range body = bounds(integer(stage_.body), ranges_);
    return lies_in(body, all) ? body : all;
  }

 private:
  Result<Unit> walk(const Expr& e, const std::vector<Expr>& facts) {
    if (const Select* n = as<Select>(e)) {
      TRY(walk(n->condition, facts));
      TRY(walk(n->a, with(facts, n->condition, true)));
      return walk(n->b, with(facts, n->condition, false));
    }
    if (const Binary* n = as<Binary>(e)) {
      TRY(walk(n->a, facts));
      return walk(n->b, facts);
    }
    if (const Cast* n = as<Cast>(e)) return walk(n->value, facts);
    if (const Call* n = as<Call>(e)) {
      for (const Expr& arg : n->args) TRY(walk(arg, facts));
    }
    const Load* n = as<Load>(e);
    if (n == nullptr) return Unit{};
    const Stage& read = dag_[n->tensor];
    for (size_t d = 0; d < n->indices.size(); ++d) {
      TRY(walk(n->indices[d], facts));
      const int64_t last = read.axes[d].extent - 1;
      const Expr index = integer(n->indices[d]);
      if (is_inside(index, last, facts)) continue;
      const Range r = bounds(simplify(index, ranges_), ranges_);
      return Error("stage ",
                   stage_.name,
                   ": reads ",
                   read.name,
                   " at ",
                   print(n->indices[d], [&](StageId id) { return dag_[id].name; }),
                   ", which may be ",
                   r.first,
                   " to ",
                   r.second,
                   ", expected 0 to ",
                   last);
    }
    return Unit{};
  }

  // The facts, and those that a condition gives where it is `holds`. Of "not both" and "one of two"
  // nothing is known.
  std::vector<Expr> with(std::vector<Expr> facts, const Expr& condition, bool holds) {
    add_facts(condition, holds, facts);
    return facts;
  }

  void add_facts(const Expr& condition, bool holds, std::vector<Expr>& facts) {
    if (const Call* n = as<Call>(condition); n && n->function == Intrinsic::kNot)
      return add_facts(n->args[0], !holds, facts);
    const Binary* n = as<Binary>(condition);
    if (n == nullptr) return;
    if (n->op == (holds ? BinaryOp::kAnd : BinaryOp::kOr)) {
      add_facts(n->a, holds, facts);
      add_facts(n->b, holds, facts);
      return;
    }
    if (!is_compare(n->op) || is_float(n->a->dtype) || n->a->dtype == DType::kBool) return;
    const Expr a = integer(n->a), b = integer(n->b);
    if (!compares_exactly(a, b)) return;
    switch (n->op) {
      case BinaryOp::kLt: facts.push_back(holds ? b - a - 1 : a - b); break;
      case BinaryOp::kLe: facts.push_back(holds ? b - a : a - b - 1); break;
      case BinaryOp::kGt: facts.push_back(holds ? a - b - 1 : b - a); break;
      case BinaryOp::kGe: facts.push_back(holds ? a - b : b - a - 1); break;
      default:
        if (holds != (n->op == BinaryOp::kEq)) return;
        facts.push_back(a - b);
        facts.push_back(b - a);
    }
  }

  // Whether a - b tells which is less: no part of it wraps around.
  bool compares_exactly(const Expr& a, const Expr& b) const {
    const auto exact = [&](const Expr& e) {
      return as<Var>(e) != nullptr || is_bounded(bounds(e, ranges_));
    };
    return exact(a) && exact(b);
  }

  // An equal int64 expression of variables. What may wrap around is a variable itself.
  Expr integer(const Expr& e) {
    if (const int64_t* value = as_int(e)) return Expr(*value);
    if (as<Var>(e)) return e;
    if (const Cast* n = as<Cast>(e); n && !n->of_bits && !is_float(n->value->dtype))
      return n->value->dtype == DType::kBool ? part(e, {0, 1}) : fitted(e, integer(n->value));
    if (const Select* n = as<Select>(e)) {
      // The condition stays as it is: add_facts() reads it.
      return fitted(e, select(n->condition, integer(n->a), integer(n->b)));
    }
    if (const Call* n = as<Call>(e); n && n->function == Intrinsic::kAbs) {
      const Expr value = integer(n->args[0]);
      return fitted(e, max(value, Expr(0) - value));
    }
    if (const Binary* n = as<Binary>(e); n && !is_compare(n->op) && e->dtype != DType::kBool)
      return fitted(e, binary(n->op, integer(n->a), integer(n->b)));
    const Load* n = as<Load>(e);
    return part(e, n != nullptr ? values_[n->tensor.value] : range_of(e->dtype));
  }

  // `made` of e, if none of its values wraps around in e's type; else any number of the type.
  Expr fitted(const Expr& e, Expr made) {
    const Range range = bounds(made, ranges_);
    const Range all = range_of(e->dtype);
    const Binary* n = as<Binary>(made);
    const bool picks =
        as<Var>(made) || as<Select>(made) ||
        (n && (n->op == BinaryOp::kMin || n->op == BinaryOp::kMax));  // one of what fits
    const bool fits = dtype_bytes(e->dtype) == 8 ? picks || is_bounded(range) : lies_in(range, all);
    return fits ? made : part(e, all);
  }

  // The variable that stands for a part of an expression; equal parts have one.
  Expr part(const Expr& e, Range range) {
    for (const auto& [known, var] : parts_)
      if (structural_equal(known, e)) return var;
    const Expr var = make_var(VarId{static_cast<int32_t>(ranges_.size())}, "part");
    ranges_.push_back(range);
    parts_.emplace_back(e, var);
    return var;
  }

  bool is_inside(const Expr& index, int64_t last, const std::vector<Expr>& facts, int splits = 6) {
    // Each side of a select by itself, where its condition does or does not hold.
    Expr split;
    visit(index, [&](const Expr& e) {
      if (!split && as<Select>(e)) split = e;
    });
    const bool has_split = static_cast<bool>(split);
    if (has_split && splits > 0) {
      const Select& n = *as<Select>(split);
      const auto side = [&](const Expr& taken, bool holds) {
        const Expr rest = rewrite(
            index, [&](const Expr& e) { return structural_equal(e, split) ? taken : Expr(); });
        return is_inside(rest, last, with(facts, n.condition, holds), splits - 1);
      };
      return side(n.a, true) && side(n.b, false);
    }
    if (lies_in(bounds(index, ranges_), {0, last})) return true;
    return is_shown(index, last, facts) ||
           is_shown(linear(simplify(index, ranges_)), last, linear(facts));
  }

  // Whether the facts show that 0 <= index <= last.
  bool is_shown(const Expr& index, int64_t last, const std::vector<Expr>& facts) const {
    const Context context = narrowed(facts);
    return context.impossible ||
           (is_not_negative(index, context) && is_not_negative(Expr(last) - index, context));
  }

  static bool is_not_negative(const Expr& e, const Context& context) {
    const auto shown = [&](const Expr& rest) { return bounds(rest, context.ranges).first >= 0; };
    // `e` is not negative if the rest of `e` without one or two facts is not.
    if (shown(e)) return true;
    for (size_t i = 0; i < context.facts.size(); ++i) {
      if (shown(e - context.facts[i])) return true;
      for (size_t j = 0; j < i; ++j)
        if (shown(e - context.facts[i] - context.facts[j])) return true;
    }
    return false;
  }

  // The ranges of the variables where the facts hold.
  Context narrowed(std::vector<Expr> facts) const {
    constexpr int kRounds = 3;
    Context context{std::move(facts), ranges_};
    for (int round = 0; round < kRounds; ++round) {
      for (const Expr& fact : context.facts) {
        const std::optional<Affine> sum = to_affine(simplify(fact, context.ranges));
        if (!sum) continue;
        if (sum->terms.empty()) context.impossible |= sum->constant < 0;
        for (const auto& [var, k] : sum->terms) {
          const Expr rest = fact - make_var(var, "") * k;
          const int64_t most = bounds(rest, context.ranges).second;  // k * var + most >= 0
          if (most >= kUnbounded.second) continue;
          Range& range = context.ranges[static_cast<size_t>(var.value)];
          if (k > 0) range.first = std::max(range.first, -floor_div(most, k));
          if (k < 0) range.second = std::min(range.second, floor_div(most, -k));
          context.impossible |= range.first > range.second;
          if (context.impossible) return context;
        }
      }
    }
    return context;
  }

  // A sum of variables, where what is no sum is a variable with its bounds.
  Expr linear(const Expr& e) {
    const Binary* n = as<Binary>(e);
    if (as_int(e) || as<Var>(e)) return e;
    const bool sum = n && (n->op == BinaryOp::kAdd || n->op == BinaryOp::kSub);
    const bool scaled = n && n->op == BinaryOp::kMul && (as_int(n->a) || as_int(n->b));
    if (sum || scaled) return binary(n->op, linear(n->a), linear(n->b));
    return part(e, bounds(e, ranges_));
  }
  std::vector<Expr> linear(std::vector<Expr> facts) {
    for (Expr& fact : facts) fact = linear(simplify(fact, ranges_));
    return facts;
  }

  const ComputeDag& dag_;
  const Stage& stage_;
  const std::vector<Range>& values_;
  std::vector<Range> ranges_;
  std::vector<std::pair<Expr, Expr>> parts_;
};

}  // namespace

Result<Unit> check_accesses(const ComputeDag& dag) {
  std::vector<Range> values;
  for (const Stage& stage : dag.stages) {
    if (stage.is_placeholder()) {
      const bool index = stage.index_bound > 0 && !is_float(stage.dtype);
      values.push_back(index ? Range{0, stage.index_bound - 1} : range_of(stage.dtype));
      continue;
    }
    StageAccesses accesses(dag, stage, values);
    TRY(accesses.check());
    values.push_back(accesses.values());
  }
  return Unit{};
}

}  // namespace pruner
