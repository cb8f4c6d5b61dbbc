#include "tensor/generalize.h"

#include <algorithm>
#include <cmath>

#include "support/check.h"

namespace pruner {

Expr ExprGeneralizer::number(const std::vector<int64_t>& values, std::string_view what) {
  if (std::ranges::all_of(values, [&](int64_t v) { return v == values[0]; })) return {values[0]};
  if (Expr form = form_(values)) return form;
  std::string text(what);
  text += " is";
  for (const int64_t value : values) text += " " + std::to_string(value);
  fail(text);
  return {values[0]};
}

Expr ExprGeneralizer::expr(const std::vector<Expr>& all) {
  const Expr& first = all[0];
  if (failed()) return first;
  for (const Expr& e : all) {
    if (e->op.index() == first->op.index() && e->dtype == first->dtype) continue;
    fail("expressions are of two kinds");
    return first;
  }
  std::vector<const ExprNode*> nodes;
  if (first.is_shared() && !is_leaf(first)) {
    for (const Expr& e : all) nodes.push_back(&*e);
    if (const auto known = made_.find(nodes); known != made_.end()) return known->second;
  }
  Expr form = std::visit(
      [&](const auto& op) -> Expr {
        using Op = std::decay_t<decltype(op)>;
        All<Op> parts;
        for (const Expr& e : all) parts.push_back(&std::get<Op>(e->op));
        return made(parts, first);
      },
      first->op);
  if (!nodes.empty()) made_.emplace(std::move(nodes), form);
  return form;
}

std::vector<Expr> ExprGeneralizer::exprs(const std::vector<std::vector<Expr>>& lists) {
  std::vector<Expr> made;
  for (const std::vector<Expr>& list : lists)
    if (list.size() != lists[0].size()) fail("indices differ in number");
  for (size_t i = 0; i < lists[0].size() && !failed(); ++i) {
    std::vector<Expr> parts;
    for (const std::vector<Expr>& list : lists) parts.push_back(list[i]);
    made.push_back(expr(parts));
  }
  return made;
}

template <typename Op>
Expr ExprGeneralizer::part(const All<Op>& all, Expr Op::*member) {
  std::vector<Expr> parts;
  for (const Op* one : all) parts.push_back(one->*member);
  return expr(parts);
}

// Whether `of` is the same of all.
template <typename Op, typename Of>
bool ExprGeneralizer::alike(const All<Op>& all, const Of& of, std::string_view what) {
  const bool same =
      std::ranges::all_of(all, [&](const Op* one) { return of(*one) == of(*all[0]); });
  if (!same) fail(what);
  return same;
}

Expr ExprGeneralizer::made(const All<IntImm>& all, const Expr& first) {
  std::vector<int64_t> values;
  for (const IntImm* n : all) values.push_back(n->value);
  if (first->dtype == DType::kBool) {
    alike(
        all, [](const IntImm& n) { return n.value; }, "a condition is decided otherwise");
    return first;
  }
  const Expr form = number(values, "a number");
  if (const int64_t* constant = as_int(form); constant != nullptr && *constant == values[0])
    return first;
  return first->dtype == DType::kInt64 ? form : cast(first->dtype, form);
}

Expr ExprGeneralizer::made(const All<FloatImm>& all, const Expr& first) {
  std::vector<double> values;
  for (const FloatImm* n : all) values.push_back(n->value);
  if (std::ranges::all_of(values, [&](double v) { return v == values[0]; })) return first;
  if (Expr form = real(values, first->dtype)) return form;
  fail("a real number is another one at each shape, and neither an integer nor the inverse of one");
  return first;
}

// Integers, as the count that a mean is divided by, or the inverses of integers; null: neither.
Expr ExprGeneralizer::real(const std::vector<double>& values, DType dtype) {
  constexpr double kMost = 1e15;  // integers below are floats of 64 bits
  const auto as_integers = [&](const auto& of) {
    std::vector<int64_t> integers;
    for (const double value : values)
      if (std::abs(of(value)) < kMost) integers.push_back(std::llround(of(value)));
    return integers.size() == values.size() ? integers : std::vector<int64_t>();
  };
  const auto agree = [&](const std::vector<int64_t>& integers, const auto& of) {
    return !integers.empty() && std::ranges::equal(values, integers, {}, {}, of);
  };
  const auto itself = [](int64_t n) { return static_cast<double>(n); };
  const std::vector<int64_t> integers = as_integers([](double v) { return v; });
  if (agree(integers, itself)) {
    const Expr form = form_(integers);
    return form ? cast(dtype, form) : form;
  }
  // The middle of an axis, exactly.
  const std::vector<int64_t> doubles = as_integers([](double v) { return 2 * v; });
  if (agree(doubles, [](int64_t n) { return static_cast<double>(n) / 2; })) {
    const Expr form = form_(doubles);
    return form ? cast(dtype, form) * float_imm(0.5, dtype) : form;
  }
  // The inverse of a float32 may have been rounded to it; what is divided by it is exact.
  const std::vector<int64_t> divisors = as_integers([](double v) { return 1 / v; });
  const auto inverse = [](int64_t n) { return 1 / static_cast<double>(n); };
  const auto rounded = [&](int64_t n) { return round_to(dtype, inverse(n)); };
  const bool exact = agree(divisors, inverse);
  if (!exact && !agree(divisors, rounded)) return {};
  const Expr form = form_(divisors);
  if (!form) return form;
  if (exact) return float_imm(1, dtype) / cast(dtype, form);
  return cast(dtype, float_imm(1, DType::kFloat64) / cast(DType::kFloat64, form));
}

Expr ExprGeneralizer::made(const All<Var>& all, const Expr& first) {
  alike(
      all, [](const Var& n) { return n.id.value; }, "variables differ");
  return first;
}

Expr ExprGeneralizer::made(const All<Binary>& all, const Expr& first) {
  if (!alike(
          all, [](const Binary& n) { return n.op; }, "operators differ"))
    return first;
  return binary(all[0]->op, part(all, &Binary::a), part(all, &Binary::b));
}

Expr ExprGeneralizer::made(const All<Select>& all, const Expr&) {
  return select(part(all, &Select::condition), part(all, &Select::a), part(all, &Select::b));
}

Expr ExprGeneralizer::made(const All<Cast>& all, const Expr& first) {
  if (!alike(
          all, [](const Cast& n) { return n.of_bits; }, "casts differ"))
    return first;
  Expr value = part(all, &Cast::value);
  return all[0]->of_bits ? bit_cast(first->dtype, std::move(value))
                         : cast(first->dtype, std::move(value));
}

Expr ExprGeneralizer::made(const All<Call>& all, const Expr& first) {
  if (!alike(
          all, [](const Call& n) { return n.function; }, "functions differ"))
    return first;
  std::vector<std::vector<Expr>> args;
  for (const Call* n : all) args.push_back(n->args);
  std::vector<Expr> made = exprs(args);
  return failed() ? first : call(all[0]->function, std::move(made));
}

Expr ExprGeneralizer::made(const All<Load>& all, const Expr& first) {
  if (!alike(
          all, [](const Load& n) { return n.tensor.value; }, "loads differ"))
    return first;
  std::vector<std::vector<Expr>> indices;
  for (const Load* n : all) indices.push_back(n->indices);
  return load(all[0]->tensor, exprs(indices), first->dtype);
}

namespace {

/// Whether two stages agree in everything that no number of a shape decides.
bool alike(const Stage& a, const Stage& b) {
  const auto same_names = [](const std::vector<Iterator>& x, const std::vector<Iterator>& y) {
    return std::ranges::equal(x, y, {}, &Iterator::name, &Iterator::name);
  };
  return a.name == b.name && a.dtype == b.dtype && same_names(a.axes, b.axes) &&
         same_names(a.reduce_axes, b.reduce_axes) && a.combiner == b.combiner && a.tag == b.tag &&
         a.output == b.output && a.constant == b.constant && a.layout_free == b.layout_free &&
         a.transform == b.transform && a.unrolled == b.unrolled &&
         a.const_index_axes == b.const_index_axes && a.read_at.size() == b.read_at.size() &&
         a.reads_from_end == b.reads_from_end && a.is_placeholder() == b.is_placeholder();
}

}  // namespace

Result<DagRange> DagRange::of(std::span<const ComputeDag* const> dags, FormulaFinder& finder) {
  return of(dags, finder.points()[0].size(), [&](const std::vector<int64_t>& values) {
    return finder.find(values).value_or(Expr());
  });
}

Result<Unit> DagRange::check_alike(const ComputeDag& a, const ComputeDag& b) {
  const ComputeDag* const both[] = {&a, &b};
  TRY(of(both, 0, [](const std::vector<int64_t>& values) { return Expr(values[0]); }));
  return Unit{};
}

Result<DagRange> DagRange::of(std::span<const ComputeDag* const> dags,
                              size_t num_symbols,
                              const NumbersForm& formula) {
  DagRange range;
  range.form_ = *dags[0];
  for (const ComputeDag* dag : dags) {
    const bool same =
        dag->size() == dags[0]->size() && std::ranges::equal(dag->stages, dags[0]->stages, alike);
    if (!same) return Error("stages differ");
  }
  for (size_t s = 0; s < range.form_.stages.size(); ++s) {
    const Stage& first = range.form_.stages[s];
    const int iterators = static_cast<int>(first.axes.size() + first.reduce_axes.size());
    std::vector<Expr> symbols;  // behind the iterators
    for (size_t i = 0; i < num_symbols; ++i)
      symbols.push_back(make_var(VarId{iterators + static_cast<int32_t>(i)}, "symbol"));
    // Extents have variable i for symbol i; bodies, in which that is an iterator, have others.
    ExprGeneralizer extents(formula), bodies([&](const std::vector<int64_t>&values) {
      const Expr found = formula(values);
      return found ? substitute(found, symbols) : found;
    });
    const auto numbers = [&](const auto& of, std::string_view what) {
      std::vector<int64_t> values;
      for (const ComputeDag* dag : dags) values.push_back(of(dag->stages[s]));
      return extents.number(values, what);
    };
    Extents& e = range.extents_.emplace_back();
    for (size_t a = 0; a < first.axes.size(); ++a)
      e.axes.push_back(numbers([&](const Stage& x) { return x.axes[a].extent; }, "an extent"));
    for (size_t a = 0; a < first.reduce_axes.size(); ++a)
      e.reduce_axes.push_back(
          numbers([&](const Stage& x) { return x.reduce_axes[a].extent; }, "an extent"));
    for (size_t a = 0; a < first.read_at.size(); ++a)
      e.read_at.push_back(numbers([&](const Stage& x) { return x.read_at[a]; }, "an extent"));
    e.index_bound = numbers([](const Stage& x) { return x.index_bound; }, "a bound");
    range.bodies_.emplace_back();
    if (!first.is_placeholder()) {
      std::vector<Expr> all;
      for (const ComputeDag* dag : dags) all.push_back(dag->stages[s].body);
      range.bodies_.back() = bodies.expr(all);
    }
    for (const ExprGeneralizer* done : {&extents, &bodies})
      if (done->failed()) return Error(first.name, ": ", done->problem());
  }
  return range;
}

std::string DagRange::key() const {
  const auto tensor_name = [](TensorId id) { return std::to_string(id.value); };
  std::string text = workload_key(form_);
  const auto add = [&](const std::vector<Expr>& list) {
    text += '|';
    for (const Expr& e : list) text += (e ? print(e, tensor_name) : "") + ',';
  };
  for (const Extents& extents : extents_) {
    add(extents.axes);
    add(extents.reduce_axes);
    add(extents.read_at);
    add({extents.index_bound});
  }
  add(bodies_);
  return text;
}

std::vector<Expr> DagRange::extents() const {
  std::vector<Expr> distinct;
  for (const Extents& stage : extents_) {
    for (const std::vector<Expr>* axes : {&stage.axes, &stage.reduce_axes}) {
      for (const Expr& e : *axes) {
        const auto equals = [&](const Expr& other) { return structural_equal(e, other); };
        if (as<Binary>(e) != nullptr && std::ranges::none_of(distinct, equals))
          distinct.push_back(e);
      }
    }
  }
  return distinct;
}

ComputeDag DagRange::at(std::span<const int64_t> values) const {
  ComputeDag dag = form_;
  for (size_t s = 0; s < dag.stages.size(); ++s) {
    Stage& stage = dag.stages[s];
    const Extents& e = extents_[s];
    const auto value = [&](const Expr& formula) { return evaluate_formula(formula, values); };
    const auto set = [&](std::vector<Iterator>& axes, const std::vector<Expr>& formulas) {
      for (size_t a = 0; a < axes.size(); ++a) {
        axes[a].extent = value(formulas[a]);
        axes[a].open = as_int(formulas[a]) == nullptr;
      }
    };
    set(stage.axes, e.axes);
    set(stage.reduce_axes, e.reduce_axes);
    for (size_t a = 0; a < e.read_at.size(); ++a) stage.read_at[a] = value(e.read_at[a]);
    stage.index_bound = value(e.index_bound);
    if (stage.is_placeholder()) continue;
    std::vector<Expr> known(e.axes.size() + e.reduce_axes.size());
    for (const int64_t v : values) known.emplace_back(v);
    stage.body = substitute(bodies_[s], known);
  }
  return dag;
}

}  // namespace pruner
