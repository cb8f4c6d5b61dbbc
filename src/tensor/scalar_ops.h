// The scalar operators, a row each: how TVM writes it, what it computes, as what Ansor's features
// count it and what it costs. Constant folding, both interpreters, the printers, the parser and the
// counts read these rows, so that an operator means one thing everywhere; a backend adds how it
// makes one (codegen/llvm/math.h).
//
// A value is an int64 or a double here. Sums, differences and products of int64 wrap around; x // 0
// is x and x % 0 is 0; min and max of a NaN are NaN.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tensor/compute_dag.h"
#include "tensor/expr.h"
#include "tensor/operation_counts.h"

namespace pruner {

struct BinaryFacts {
  BinaryOp op;
  std::string_view text;  // printed form: an infix operator, or a function's name
  int precedence;         // precedence of an infix operator, the tightest highest; 0: max(a, b)
  Operation of_floats, of_ints;    // the count that the operator adds to, by its operands
  std::string_view also = {};      // a further infix spelling that is read, ...
  std::string_view function = {};  // ... and a spelling as a function

  bool is_function() const { return precedence == 0; }
};

struct IntrinsicFacts {
  Intrinsic op;
  std::string_view text;  // TVM's, after "tir."
  size_t arguments;
  double operations;  // vector instructions that a call becomes; 1 is a plain one
  const char* c;      // C's name for doubles, to which CUDA's functions of floats add an f
};

/// A row: facts, and `value(a, b)`, a function object on two int64 or two double (an Intrinsic:
/// double only; one of one argument passes the second over).
template <typename Facts, typename Value>
struct ScalarRow {
  Facts facts;
  Value value;
};
template <typename Facts, typename Value>
ScalarRow(Facts, Value) -> ScalarRow<Facts, Value>;

/// x op y where it cannot overflow: unsigned for int64, as it is for wider integers and doubles.
template <typename T, typename Op>
constexpr T wrapping(T x, T y, Op op) {
  using Unsigned = std::conditional_t<std::is_same_v<T, int64_t>, uint64_t, T>;
  return static_cast<T>(op(static_cast<Unsigned>(x), static_cast<Unsigned>(y)));
}

/// x // y and x % y, rounding down; doubles have no x // y, and their x % y is exact where the
/// signs are equal. A processor stops at a division of integers by zero, and at one of the least
/// number by -1.
template <typename T>
constexpr T divided_down(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::numeric_limits<T>::quiet_NaN();
  } else {
    if (y == T{0}) return x;
    if constexpr (std::is_unsigned_v<T>) return x / y;
    if (y == static_cast<T>(-1)) return wrapping(T{0}, x, [](auto a, auto b) { return a - b; });
    return static_cast<T>(x / y - (x % y != 0 && (x < 0) != (y < 0)));
  }
}
template <typename T>
constexpr T remainder_down(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    const T rest = std::fmod(x, y);
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
  } else {
    if (y == T{0}) return T{0};
    if constexpr (std::is_unsigned_v<T>) return x % y;
    if (y == static_cast<T>(-1)) return T{0};
    return static_cast<T>(x % y + (x % y != 0 && (x < 0) != (y < 0)) * y);
  }
}

/// Whether a float becomes an integer of this type through int64, not int32.
constexpr bool truncates_in_64_bits(DType t) {
  return dtype_bytes(t) == 8 || (dtype_bytes(t) == 4 && !is_signed_int(t));
}

/// A float as an integer or bool: towards zero, through int32 or int64, and wrapped around from
/// there. Of what these don't hold, and of NaN, it is their least number, as x86 converts; but
/// uint64 holds what is below 2^64.
constexpr int64_t truncate_to(DType t, double value) {
  if (t == DType::kBool) return value != 0;
  if (is_wide_unsigned(t) && value >= 0x1p63 && value < 0x1p64)
    return static_cast<int64_t>(static_cast<uint64_t>(value));
  const double limit = truncates_in_64_bits(t) ? 0x1p63 : 0x1p31;  // -limit is the least number
  const bool holds = value > -limit - 1 && value < limit;
  return wrap_to(t, static_cast<int64_t>(holds ? value : -limit));
}

template <typename T>
constexpr bool is_nan(T x) {
  return x != x;
}

/// In the order of BinaryOp.
inline constexpr std::tuple kBinaryRows = {
    ScalarRow{BinaryFacts{BinaryOp::kAdd, "+", 4, Operation::kFloatAddSub, Operation::kIntAddSub},
              [](auto x, auto y) { return wrapping(x, y, [](auto a, auto b) { return a + b; }); }},
    ScalarRow{BinaryFacts{BinaryOp::kSub, "-", 4, Operation::kFloatAddSub, Operation::kIntAddSub},
              [](auto x, auto y) { return wrapping(x, y, [](auto a, auto b) { return a - b; }); }},
    ScalarRow{BinaryFacts{BinaryOp::kMul, "*", 5, Operation::kFloatMul, Operation::kIntMul},
              [](auto x, auto y) { return wrapping(x, y, [](auto a, auto b) { return a * b; }); }},
    ScalarRow{BinaryFacts{BinaryOp::kDiv, "/", 5, Operation::kFloatDivMod, Operation::kIntDivMod},
              [](auto x, auto y) {
                if constexpr (std::is_floating_point_v<decltype(x)>)
                  return x / y;
                else
                  return divided_down(x, y);
              }},
    ScalarRow{BinaryFacts{BinaryOp::kFloorDiv,
                          "//",
                          5,
                          Operation::kFloatDivMod,
                          Operation::kIntDivMod,
                          {},
                          "floordiv"},
              [](auto x, auto y) { return divided_down(x, y); }},
    ScalarRow{BinaryFacts{BinaryOp::kFloorMod,
                          "%%",
                          5,
                          Operation::kFloatDivMod,
                          Operation::kIntDivMod,
                          "%",
                          "floormod"},
              [](auto x, auto y) { return remainder_down(x, y); }},
    ScalarRow{
        BinaryFacts{BinaryOp::kMin, "min", 0, Operation::kFloatCompare, Operation::kIntCompare},
        [](auto x, auto y) { return y < x || is_nan(y) ? y : x; }},
    ScalarRow{
        BinaryFacts{BinaryOp::kMax, "max", 0, Operation::kFloatCompare, Operation::kIntCompare},
        [](auto x, auto y) { return x < y || is_nan(y) ? y : x; }},
    ScalarRow{BinaryFacts{BinaryOp::kLt, "<", 3, Operation::kFloatCompare, Operation::kIntCompare},
              [](auto x, auto y) { return x < y; }},
    ScalarRow{BinaryFacts{BinaryOp::kLe, "<=", 3, Operation::kFloatCompare, Operation::kIntCompare},
              [](auto x, auto y) { return x <= y; }},
    ScalarRow{BinaryFacts{BinaryOp::kGt, ">", 3, Operation::kFloatCompare, Operation::kIntCompare},
              [](auto x, auto y) { return x > y; }},
    ScalarRow{BinaryFacts{BinaryOp::kGe, ">=", 3, Operation::kFloatCompare, Operation::kIntCompare},
              [](auto x, auto y) { return x >= y; }},
    ScalarRow{BinaryFacts{BinaryOp::kEq, "==", 3, Operation::kFloatCompare, Operation::kIntCompare},
              [](auto x, auto y) { return x == y; }},
    ScalarRow{BinaryFacts{BinaryOp::kNe, "!=", 3, Operation::kFloatCompare, Operation::kIntCompare},
              [](auto x, auto y) { return x != y; }},
    ScalarRow{BinaryFacts{BinaryOp::kAnd, "&&", 2, Operation::kLogic, Operation::kLogic},
              [](auto x, auto y) { return x != 0 && y != 0; }},
    ScalarRow{BinaryFacts{BinaryOp::kOr, "||", 1, Operation::kLogic, Operation::kLogic},
              [](auto x, auto y) { return x != 0 || y != 0; }},
    ScalarRow{BinaryFacts{BinaryOp::kXor, "xor", 0, Operation::kIntOther, Operation::kIntOther},
              [](auto x, auto y) {
                if constexpr (std::is_floating_point_v<decltype(x)>)
                  return std::numeric_limits<decltype(x)>::quiet_NaN();
                else
                  return x ^ y;
              }},
};

/// In the order of Intrinsic.
inline constexpr std::tuple kIntrinsicRows = {
    ScalarRow{IntrinsicFacts{Intrinsic::kExp, "exp", 1, 12, "exp"},
              [](double x, double) { return std::exp(x); }},
    ScalarRow{IntrinsicFacts{Intrinsic::kLog, "log", 1, 16, "log"},
              [](double x, double) { return std::log(x); }},
    ScalarRow{IntrinsicFacts{Intrinsic::kSqrt, "sqrt", 1, 4, "sqrt"},
              [](double x, double) { return std::sqrt(x); }},
    ScalarRow{IntrinsicFacts{Intrinsic::kRsqrt, "rsqrt", 1, 4, "rsqrt"},
              [](double x, double) { return 1 / std::sqrt(x); }},
    ScalarRow{IntrinsicFacts{Intrinsic::kTanh, "tanh", 1, 20, "tanh"},
              [](double x, double) { return std::tanh(x); }},
    ScalarRow{IntrinsicFacts{Intrinsic::kSigmoid, "sigmoid", 1, 20, "sigmoid"},
              [](double x, double) { return 1 / (1 + std::exp(-x)); }},
    ScalarRow{IntrinsicFacts{Intrinsic::kErf, "erf", 1, 20, "erf"},
              [](double x, double) { return std::erf(x); }},
    ScalarRow{IntrinsicFacts{Intrinsic::kPow, "pow", 2, 32, "pow"},
              [](double x, double y) { return std::pow(x, y); }},
    ScalarRow{IntrinsicFacts{Intrinsic::kAbs, "fabs", 1, 1, "fabs"},
              [](double x, double) { return std::abs(x); }},
    ScalarRow{IntrinsicFacts{Intrinsic::kFloor, "floor", 1, 1, "floor"},
              [](double x, double) { return std::floor(x); }},
    ScalarRow{IntrinsicFacts{Intrinsic::kCeil, "ceil", 1, 1, "ceil"},
              [](double x, double) { return std::ceil(x); }},
    ScalarRow{IntrinsicFacts{Intrinsic::kRound, "round", 1, 1, "rint"},  // halves to even
              [](double x, double) { return std::nearbyint(x); }},
    ScalarRow{IntrinsicFacts{Intrinsic::kSin, "sin", 1, 24, "sin"},
              [](double x, double) { return std::sin(x); }},
    ScalarRow{IntrinsicFacts{Intrinsic::kCos, "cos", 1, 24, "cos"},
              [](double x, double) { return std::cos(x); }},
    ScalarRow{IntrinsicFacts{Intrinsic::kNot, "not", 1, 1, "!"},
              [](double x, double) { return x == 0 ? 1.0 : 0.0; }},
    ScalarRow{IntrinsicFacts{Intrinsic::kTan, "tan", 1, 28, "tan"},
              [](double x, double) { return std::tan(x); }},
    ScalarRow{IntrinsicFacts{Intrinsic::kAsin, "asin", 1, 24, "asin"},
              [](double x, double) { return std::asin(x); }},
    ScalarRow{IntrinsicFacts{Intrinsic::kAcos, "acos", 1, 24, "acos"},
              [](double x, double) { return std::acos(x); }},
    ScalarRow{IntrinsicFacts{Intrinsic::kAtan, "atan", 1, 24, "atan"},
              [](double x, double) { return std::atan(x); }},
    ScalarRow{IntrinsicFacts{Intrinsic::kSinh, "sinh", 1, 24, "sinh"},
              [](double x, double) { return std::sinh(x); }},
    ScalarRow{IntrinsicFacts{Intrinsic::kCosh, "cosh", 1, 20, "cosh"},
              [](double x, double) { return std::cosh(x); }},
    ScalarRow{IntrinsicFacts{Intrinsic::kAsinh, "asinh", 1, 40, "asinh"},
              [](double x, double) { return std::asinh(x); }},
    ScalarRow{IntrinsicFacts{Intrinsic::kAcosh, "acosh", 1, 40, "acosh"},
              [](double x, double) { return std::acosh(x); }},
    ScalarRow{IntrinsicFacts{Intrinsic::kAtanh, "atanh", 1, 32, "atanh"},
              [](double x, double) { return std::atanh(x); }},
    ScalarRow{IntrinsicFacts{Intrinsic::kTf32, "round_to_tf32", 1, 3, "round_to_tf32"},
              [](double x, double) { return round_to_tf32(x); }},
    ScalarRow{IntrinsicFacts{Intrinsic::kExpm1, "expm1", 1, 16, "expm1"},
              [](double x, double) { return std::expm1(x); }},
    ScalarRow{IntrinsicFacts{Intrinsic::kLog1p, "log1p", 1, 20, "log1p"},
              [](double x, double) { return std::log1p(x); }},
    ScalarRow{IntrinsicFacts{Intrinsic::kNormalCdf, "normal_cdf", 1, 32, "normal_cdf"},
              [](double x, double) { return 0.5 * std::erfc(-x * M_SQRT1_2); }},
};

constexpr const auto& rows_of(BinaryOp) { return kBinaryRows; }
constexpr const auto& rows_of(Intrinsic) { return kIntrinsicRows; }

/// Calls fn(value) with the function object of the row of `op`, so that a loop in `fn` holds no
/// switch.
template <typename Op, typename Fn>
void with_value(Op op, const Fn& fn) {
  const auto one = [&](const auto& row) { return row.facts.op == op && (fn(row.value), true); };
  std::apply([&](const auto&... row) { (one(row) || ...); }, rows_of(op));
}

/// The facts of all rows of an operator's kind, as an array.
template <typename Op>
inline constexpr auto kFactsOf =
    std::apply([](const auto&... row) { return std::array{row.facts...}; }, rows_of(Op{}));
inline constexpr const auto& kBinaryOps = kFactsOf<BinaryOp>;
inline constexpr const auto& kIntrinsics = kFactsOf<Intrinsic>;

constexpr const BinaryFacts& facts_of(BinaryOp op) { return kBinaryOps[static_cast<size_t>(op)]; }
constexpr const IntrinsicFacts& facts_of(Intrinsic function) {
  return kIntrinsics[static_cast<size_t>(function)];
}

/// x op y, where no loop is to be fast.
template <typename Out, typename T>
Out value_of(BinaryOp op, T x, T y) {
  Out out{};
  with_value(op, [&](const auto& value) { out = static_cast<Out>(value(x, y)); });
  return out;
}

/// `CombinerFacts` describes the operation that a reduction combines values with.
struct CombinerFacts {
  Combiner combiner;
  BinaryOp op;
  std::string_view json;  // reduce[(x + y)](...)
  std::string_view dag;   // C(i, j) += ...
};
inline constexpr CombinerFacts kCombiners[] = {
    {Combiner::kSum, BinaryOp::kAdd, "(x + y)", "+="},
    {Combiner::kProd, BinaryOp::kMul, "(x * y)", "*="},
    {Combiner::kMax, BinaryOp::kMax, "max(x, y)", "max="},
    {Combiner::kMin, BinaryOp::kMin, "min(x, y)", "min="},
};

/// Returns the facts of a combiner that is not kNone.
constexpr const CombinerFacts& facts_of(Combiner combiner) {
  const CombinerFacts* row = kCombiners;
  while (row->combiner != combiner) ++row;
  return *row;
}
/// Returns the combiner that combines with `op`, which must be the operation of a combiner.
constexpr Combiner combiner_with(BinaryOp op) {
  const CombinerFacts* row = kCombiners;
  while (row->op != op) ++row;
  return row->combiner;
}

}  // namespace pruner
