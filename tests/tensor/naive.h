// The meaning of a DAG in the most direct way: one element at a time, by recursion. Exponentially
// slow on deep DAGs and without any of the interpreter's machinery, so the two check each other.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "tensor/dag_builder.h"
#include "tensor/interpreter.h"
#include "tensor/operators.h"

namespace pruner {

class Naive {
 public:
  Naive(const ComputeDag& dag, std::span<const Tensor> inputs) : dag_(dag), inputs_(inputs) {}

  double element(StageId id, const std::vector<int64_t>& point) const {
    const Stage& stage = dag_[id];
    if (stage.is_placeholder()) {
      size_t which = 0;
      while (dag_.inputs()[which] != id) ++which;
      return inputs_[which].get(position(stage, point));
    }
    std::vector<int64_t> vars = point;
    vars.resize(stage.axes.size() + stage.reduce_axes.size(), 0);
    if (!stage.is_reduction()) return rounded(stage.dtype, value(stage.body, vars));
    double result = value(combiner_identity(stage.combiner, stage.dtype), {});
    for (int64_t i = 0; i < stage.reduce_size(); ++i) {
      int64_t rest = i;
      for (size_t r = stage.reduce_axes.size(); r-- > 0;) {
        vars[stage.axes.size() + r] = rest % stage.reduce_axes[r].extent;
        rest /= stage.reduce_axes[r].extent;
      }
      const double v = value(stage.body, vars);
      if (stage.combiner == Combiner::kSum) result += v;
      if (stage.combiner == Combiner::kProd) result *= v;
      if (stage.combiner == Combiner::kMax) result = std::max(result, v);
      if (stage.combiner == Combiner::kMin) result = std::min(result, v);
    }
    return rounded(stage.dtype, result);
  }

  double element(StageId id, int64_t at) const {
    std::vector<int64_t> point(dag_[id].axes.size());
    for (size_t d = point.size(); d-- > 0;) {
      point[d] = at % dag_[id].axes[d].extent;
      at /= dag_[id].axes[d].extent;
    }
    return element(id, point);
  }

 private:
  static int64_t position(const Stage& stage, const std::vector<int64_t>& point) {
    int64_t at = 0;
    for (size_t d = 0; d < point.size(); ++d) {
      CHECK(point[d] >= 0 && point[d] < stage.axes[d].extent) << stage.name << " dim " << d;
      at = at * stage.axes[d].extent + point[d];
    }
    return at;
  }
  static double rounded(DType dtype, double v) {
    Tensor cell(dtype, {1});
    is_float(dtype) ? cell.set(0, v) : cell.set_int(0, static_cast<int64_t>(v));
    return cell.get(0);
  }

  double value(const Expr& e, const std::vector<int64_t>& vars) const {
    const auto sub = [&](const Expr& part) { return value(part, vars); };
    return match(
        e->op,
        [](const IntImm& n) { return static_cast<double>(n.value); },
        [](const FloatImm& n) { return n.value; },
        [&](const Var& n) { return static_cast<double>(vars[static_cast<size_t>(n.id.value)]); },
        [&](const Binary& n) { return binary(n.op, sub(n.a), sub(n.b)); },
        [&](const Select& n) { return sub(n.condition) != 0 ? sub(n.a) : sub(n.b); },
        [&](const Cast& n) {
          const double v = sub(n.value);
          return is_float(e->dtype) || e->dtype == DType::kBool ? rounded(e->dtype, v)
                                                                : std::trunc(v);
        },
        [&](const Call& n) { return call(n.function, sub(n.args[0]), sub(n.args.back())); },
        [&](const Load& n) {
          std::vector<int64_t> point;
          for (const Expr& index : n.indices) point.push_back(static_cast<int64_t>(sub(index)));
          return element(n.tensor, point);
        });
  }

  static double binary(BinaryOp op, double a, double b) {
    switch (op) {
      case BinaryOp::kAdd: return a + b;
      case BinaryOp::kSub: return a - b;
      case BinaryOp::kMul: return a * b;
      case BinaryOp::kDiv: return a / b;
      case BinaryOp::kFloorDiv: return std::floor(a / b);
      case BinaryOp::kFloorMod: return a - b * std::floor(a / b);
      case BinaryOp::kMin: return std::min(a, b);
      case BinaryOp::kMax: return std::max(a, b);
      case BinaryOp::kLt: return a < b;
      case BinaryOp::kLe: return a <= b;
      case BinaryOp::kGt: return a > b;
      case BinaryOp::kGe: return a >= b;
      case BinaryOp::kEq: return a == b;
      case BinaryOp::kNe: return a != b;
      case BinaryOp::kAnd: return a != 0 && b != 0;
      case BinaryOp::kOr: return a != 0 || b != 0;
      case BinaryOp::kXor: return static_cast<double>(int64_t(a) ^ int64_t(b));
    }
    return 0;
  }

  static double call(Intrinsic function, double x, double y) {
    switch (function) {
      case Intrinsic::kExp: return std::exp(x);
      case Intrinsic::kLog: return std::log(x);
      case Intrinsic::kSqrt: return std::sqrt(x);
      case Intrinsic::kRsqrt: return 1 / std::sqrt(x);
      case Intrinsic::kTanh: return std::tanh(x);
      case Intrinsic::kSigmoid: return 1 / (1 + std::exp(-x));
      case Intrinsic::kErf: return std::erf(x);
      case Intrinsic::kPow: return std::pow(x, y);
      case Intrinsic::kAbs: return std::abs(x);
      case Intrinsic::kFloor: return std::floor(x);
      case Intrinsic::kCeil: return std::ceil(x);
      case Intrinsic::kRound: return std::nearbyint(x);
      case Intrinsic::kSin: return std::sin(x);
      case Intrinsic::kCos: return std::cos(x);
      case Intrinsic::kTan: return std::tan(x);
      case Intrinsic::kAsin: return std::asin(x);
      case Intrinsic::kAcos: return std::acos(x);
      case Intrinsic::kAtan: return std::atan(x);
      case Intrinsic::kSinh: return std::sinh(x);
      case Intrinsic::kCosh: return std::cosh(x);
      case Intrinsic::kAsinh: return std::asinh(x);
      case Intrinsic::kAcosh: return std::acosh(x);
      case Intrinsic::kAtanh: return std::atanh(x);
      case Intrinsic::kTf32: {
        // 11 bits in all, of which the first is not stored; `ldexp` is exact.
        if (x == 0 || !std::isfinite(x)) return x;
        const int exponent = std::max(std::ilogb(x), -126) - 10;
        return static_cast<float>(std::ldexp(std::round(std::ldexp(x, -exponent)), exponent));
      }
      case Intrinsic::kExpm1: return std::expm1(x);
      case Intrinsic::kLog1p: return std::log1p(x);
      case Intrinsic::kNormalCdf: return 0.5 * std::erfc(-x * M_SQRT1_2);
      case Intrinsic::kNot: return x == 0;
    }
    return 0;
  }

  const ComputeDag& dag_;
  std::span<const Tensor> inputs_;
};

inline ComputeDag operator_dag(const std::string& text) {
  Result<ComputeDag> dag = parse_operator(text);
  EXPECT_TRUE(dag.ok()) << text << ": " << (dag.ok() ? "" : dag.error().message());
  return dag.ok() ? *std::move(dag) : ComputeDag{};
}

inline Tensor tensor_of(std::vector<int64_t> shape,
                        const std::vector<double>& values,
                        DType dtype = DType::kFloat32) {
  Tensor tensor(dtype, std::move(shape));
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.set(i, values[static_cast<size_t>(i)]);
  return tensor;
}

inline std::vector<double> values_of(const Tensor& tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) values.push_back(tensor.get(i));
  return values;
}

}  // namespace pruner
