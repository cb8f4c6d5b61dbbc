#include "measure/narrow_contraction.h"

#include <algorithm>
#include <cmath>

#include "space/dot.h"

namespace pruner {

namespace {

constexpr int64_t kWhole = 8, kWholeByte = 4;

bool is_byte(DType t) { return t == DType::kUInt8 || t == DType::kInt8; }

bool contracts_narrow(const Stage& stage) {
  if (stage.combiner != Combiner::kSum) return false;
  const std::optional<NarrowProduct> product = narrow_product(stage.body);
  if (!product) return false;
  const auto narrow = [](const Cast* factor) {
    const DType type = factor->value->dtype;
    return !factor->of_bits && (is_narrow_float(type) || is_byte(type));
  };
  return narrow(product->a) && narrow(product->b);
}

bool reads(const Expr& e, const std::vector<bool>& stages) {
  bool found = false;
  visit(e, [&](const Expr& node) {
    if (const Load* load = as<Load>(node)) found |= stages[static_cast<size_t>(load->tensor.value)];
  });
  return found;
}

/// Whether a value is one of those that are read, cast or not, or a constant.
bool is_moved(const Expr& e, const std::vector<bool>& exact) {
  return match(
      e->op,
      [](const IntImm&) { return true; },
      [](const FloatImm&) { return true; },
      [](const Var&) { return true; },
      [&](const Binary& n) {
        const bool picks = n.op == BinaryOp::kMin || n.op == BinaryOp::kMax;
        return picks && is_moved(n.a, exact) && is_moved(n.b, exact);
      },
      [&](const Select& n) { return is_moved(n.a, exact) && is_moved(n.b, exact); },
      [&](const Cast& n) { return is_moved(n.value, exact); },
      [](const Call&) { return false; },
      [&](const Load& n) { return exact[static_cast<size_t>(n.tensor.value)]; });
}

/// Returns how much, at most, a change of the stages that have a gain changes `e`.
std::optional<double> gain_of(const Expr& e, const std::vector<std::optional<double>>& gains) {
  using Gain = std::optional<double>;
  const auto both = [&](const Expr& a, const Expr& b, auto join) -> Gain {
    const Gain of_a = gain_of(a, gains), of_b = gain_of(b, gains);
    return of_a && of_b ? Gain(join(*of_a, *of_b)) : std::nullopt;
  };
  const auto sum = [](double a, double b) { return a + b; };
  const auto larger = [](double a, double b) { return std::max(a, b); };
  const auto unless_moved = [&](const Gain& gain) { return gain == 0.0 ? gain : std::nullopt; };
  return match(
      e->op,
      [](const IntImm&) { return Gain(0); },
      [](const FloatImm&) { return Gain(0); },
      [](const Var&) { return Gain(0); },
      [&](const Binary& n) -> Gain {
        if (n.op == BinaryOp::kAdd || n.op == BinaryOp::kSub) return both(n.a, n.b, sum);
        if (n.op == BinaryOp::kMin || n.op == BinaryOp::kMax) return both(n.a, n.b, larger);
        const FloatImm* factor = as<FloatImm>(n.b);
        if (n.op != BinaryOp::kMul || factor == nullptr) return unless_moved(both(n.a, n.b, sum));
        const Gain of_a = gain_of(n.a, gains);
        return of_a ? Gain(*of_a * std::abs(factor->value)) : std::nullopt;
      },
      [&](const Select& n) -> Gain {
        if (gain_of(n.condition, gains) != 0.0) return std::nullopt;
        return both(n.a, n.b, larger);
      },
      [&](const Cast& n) -> Gain {
        const Gain gain = gain_of(n.value, gains);
        const bool keeps = !n.of_bits && is_float(e->dtype) && !is_narrow_float(e->dtype);
        return keeps ? gain : unless_moved(gain);
      },
      [&](const Call& n) -> Gain {
        double gain = 0;
        for (const Expr& arg : n.args) {
          const Gain of_arg = gain_of(arg, gains);
          if (!of_arg) return std::nullopt;
          gain = std::max(gain, *of_arg);
        }
        return n.function == Intrinsic::kAbs ? Gain(gain) : unless_moved(gain);
      },
      [&](const Load& n) -> Gain { return gains[static_cast<size_t>(n.tensor.value)]; });
}

/// The value that a stage casts to its narrow float, or an empty expression.
Expr before_rounding(const Stage& stage) {
  const Cast* cast = as<Cast>(stage.body);
  const bool rounds = cast != nullptr && !cast->of_bits && !stage.is_reduction() &&
                      is_narrow_float(stage.dtype) && cast->value->dtype == DType::kFloat32;
  return rounds ? cast->value : Expr();
}

/// The largest absolute value of a type up to which it holds every whole number.
double whole_numbers_of(DType t) {
  if (is_float(t)) return std::ldexp(1.0, 1 + row_of(t).fraction_bits);
  return static_cast<double>(greatest_int(t));
}

using Bounds = std::vector<std::optional<double>>;  // one per stage

constexpr double kWholeTf32 = 1 << 11;  // up to which it holds every whole number

/// The largest absolute value of an expression, all of whose values are whole numbers that their
/// types hold; none: not known.
std::optional<double> whole_bound(const Expr& e, const Bounds& bounds) {
  using Bound = std::optional<double>;
  const auto held = [&](Bound bound) {
    return bound && *bound <= whole_numbers_of(e->dtype) ? bound : std::nullopt;
  };
  return match(
      e->op,
      [](const IntImm& n) { return Bound(std::abs(static_cast<double>(n.value))); },
      [](const FloatImm& n) {
        if (std::isinf(n.value)) return Bound(0);  // every float has it
        return n.value == std::floor(n.value) ? Bound(std::abs(n.value)) : std::nullopt;
      },
      [](const Var&) { return Bound(); },
      [&](const Binary& n) -> Bound {
        const Bound a = whole_bound(n.a, bounds), b = whole_bound(n.b, bounds);
        if (!a || !b) return std::nullopt;
        switch (n.op) {
          case BinaryOp::kAdd:
          case BinaryOp::kSub: return held(*a + *b);
          case BinaryOp::kMul: return held(*a * *b);
          case BinaryOp::kMin:
          case BinaryOp::kMax: return std::max(*a, *b);
          default: return std::nullopt;
        }
      },
      [&](const Select& n) -> Bound {
        bool of_places = true;
        visit(n.condition, [&](const Expr& node) { of_places &= as<Load>(node) == nullptr; });
        const Bound a = whole_bound(n.a, bounds), b = whole_bound(n.b, bounds);
        return of_places && a && b ? Bound(std::max(*a, *b)) : std::nullopt;
      },
      [&](const Cast& n) {
        // A negative number has no place in a type without a sign.
        const bool keeps = is_float(e->dtype) || is_signed_int(e->dtype);
        return keeps && !n.of_bits ? held(whole_bound(n.value, bounds)) : std::nullopt;
      },
      [&](const Call& n) -> Bound {
        const bool whole = n.function == Intrinsic::kAbs || n.function == Intrinsic::kFloor ||
                           n.function == Intrinsic::kCeil || n.function == Intrinsic::kRound;
        const Bound bound = whole_bound(n.args[0], bounds);
        if (n.function == Intrinsic::kTf32) return bound && *bound <= kWholeTf32 ? bound : Bound();
        return whole ? bound : std::nullopt;
      },
      [&](const Load& n) { return bounds[static_cast<size_t>(n.tensor.value)]; });
}

std::optional<double> whole_bound(const Stage& stage, const Bounds& bounds) {
  if (stage.is_placeholder()) {
    if (stage.index_bound > 0 || !stage.read_at.empty()) return std::nullopt;
    if (is_byte(stage.dtype)) return kWholeByte;
    const bool holds = is_float(stage.dtype) || is_signed_int(stage.dtype);
    return holds && whole_numbers_of(stage.dtype) >= kWhole ? std::optional<double>(kWhole)
                                                            : std::nullopt;
  }
  if (stage.combiner == Combiner::kProd) return std::nullopt;
  if (stage.output) {
    // Both round the same whole number once.
    if (const Expr value = before_rounding(stage)) return whole_bound(value, bounds);
  }
  std::optional<double> bound = whole_bound(stage.body, bounds);
  if (bound && stage.combiner == Combiner::kSum) *bound *= static_cast<double>(stage.reduce_size());
  return bound && *bound <= whole_numbers_of(stage.dtype) ? bound : std::nullopt;
}

}  // namespace

std::optional<SumsBehind> sums_behind(const ComputeDag& dag, StageId output) {
  std::optional<SumsBehind> sums;
  std::vector<bool> after(dag.stages.size());  // the contraction, it included
  std::vector<bool> exact(dag.stages.size());  // no kernel computes another value
  std::vector<std::optional<double>> gains(dag.stages.size(), 0.0);
  for (int s = 0; s <= output.value; ++s) {
    const Stage& stage = dag.stages[static_cast<size_t>(s)];
    const auto at = static_cast<size_t>(s);
    exact[at] = stage.is_placeholder() || (!stage.is_reduction() && is_moved(stage.body, exact));
    if (stage.is_placeholder()) continue;
    const bool moved = reads(stage.body, after);
    if (contracts_narrow(stage)) {
      if (sums || moved) return std::nullopt;
      sums = SumsBehind{StageId{s}, stage.reduce_size(), 0, false, {}};
      after[at] = true;
      gains[at] = 1;
      continue;
    }
    if (!moved) {
      const bool wide = is_float(stage.dtype) && !is_narrow_float(stage.dtype);
      if (!wide && !exact[at]) return std::nullopt;
      continue;
    }
    after[at] = true;
    ++sums->stages;
    const Expr value = s == output.value ? before_rounding(stage) : Expr();
    const bool selects = !stage.is_reduction() || stage.combiner == Combiner::kMax ||
                         stage.combiner == Combiner::kMin;
    gains[at] = selects ? gain_of(value ? value : stage.body, gains) : std::nullopt;
    if (!value && is_narrow_float(stage.dtype)) return std::nullopt;
  }
  if (!sums || !after[static_cast<size_t>(output.value)] || !is_float(dag[output].dtype))
    return std::nullopt;
  sums->rounded = is_narrow_float(dag[output].dtype);
  sums->gain = gains[static_cast<size_t>(output.value)];
  return sums;
}

ComputeDag before_last_rounding(const ComputeDag& dag, StageId output) {
  ComputeDag unrounded = dag;
  if (const Expr value = before_rounding(dag[output])) {
    unrounded[output].body = value;
    unrounded[output].dtype = value->dtype;
  }
  return unrounded;
}

bool is_exact_on_whole_numbers(const ComputeDag& dag) {
  Bounds bounds;
  for (const Stage& stage : dag.stages) {
    bounds.push_back(whole_bound(stage, bounds));
    if (!bounds.back()) return false;
  }
  return std::ranges::any_of(dag.stages, contracts_narrow);
}

std::vector<Tensor> whole_numbers(const ComputeDag& dag, Rng& rng) {
  std::vector<Tensor> inputs;
  for (const StageId id : dag.inputs()) {
    const Stage& stage = dag[id];
    Tensor tensor(stage.dtype, stage.shape());
    const int64_t most = is_byte(stage.dtype) ? kWholeByte : kWhole;
    const int64_t least = stage.dtype == DType::kUInt8 ? 0 : -most;
    for (int64_t i = 0; i < tensor.num_elements(); ++i)
      tensor.set(i, static_cast<double>(least + rng.below(most - least + 1)));
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

}  // namespace pruner
