// How TVM writes the operators and intrinsics: one table for the printer and the parser.
#pragma once

#include <span>
#include <string_view>

#include "tensor/compute_dag.h"
#include "tensor/expr.h"

namespace pruner {

struct BinarySpelling {
  BinaryOp op;
  std::string_view text;
  int precedence;  // binds tighter when higher
  bool prefix;     // max(a, b)
};
inline constexpr BinarySpelling kBinarySpellings[] = {
    {BinaryOp::kAdd, "+", 4, false},
    {BinaryOp::kSub, "-", 4, false},
    {BinaryOp::kMul, "*", 5, false},
    {BinaryOp::kFloorDiv, "//", 5, false},
    {BinaryOp::kDiv, "/", 5, false},
    {BinaryOp::kFloorMod, "%%", 5, false},
    {BinaryOp::kFloorMod, "%", 5, false},
    {BinaryOp::kFloorDiv, "floordiv", 0, true},
    {BinaryOp::kFloorMod, "floormod", 0, true},
    {BinaryOp::kMin, "min", 0, true},
    {BinaryOp::kMax, "max", 0, true},
    {BinaryOp::kLe, "<=", 3, false},
    {BinaryOp::kLt, "<", 3, false},
    {BinaryOp::kGe, ">=", 3, false},
    {BinaryOp::kGt, ">", 3, false},
    {BinaryOp::kEq, "==", 3, false},
    {BinaryOp::kNe, "!=", 3, false},
    {BinaryOp::kAnd, "&&", 2, false},
    {BinaryOp::kOr, "||", 1, false},
};

/// The first row of `op`: the spelling that is printed.
constexpr const BinarySpelling& spelling_of(BinaryOp op) {
  const BinarySpelling* row = kBinarySpellings;
  while (row->op != op) ++row;
  return *row;
}

struct IntrinsicSpelling {
  Intrinsic function;
  std::string_view text;  // after "tir."
};
inline constexpr IntrinsicSpelling kIntrinsicSpellings[] = {
    {Intrinsic::kExp, "exp"},
    {Intrinsic::kLog, "log"},
    {Intrinsic::kSqrt, "sqrt"},
    {Intrinsic::kRsqrt, "rsqrt"},
    {Intrinsic::kTanh, "tanh"},
    {Intrinsic::kErf, "erf"},
    {Intrinsic::kSigmoid, "sigmoid"},
    {Intrinsic::kPow, "pow"},
    {Intrinsic::kAbs, "fabs"},
    {Intrinsic::kFloor, "floor"},
    {Intrinsic::kCeil, "ceil"},
    {Intrinsic::kSin, "sin"},
    {Intrinsic::kRound, "round"},
    {Intrinsic::kCos, "cos"},
};

constexpr std::string_view spelling_of(Intrinsic function) {
  for (const IntrinsicSpelling& row : kIntrinsicSpellings) {
    if (row.function == function) return row.text;
  }
  return "not";
}

struct CombinerSpelling {
  Combiner combiner;
  std::string_view json;  // reduce[(x + y)](...)
  std::string_view dag;   // C(i, j) += ...
};
inline constexpr CombinerSpelling kCombinerSpellings[] = {
    {Combiner::kSum, "(x + y)", "+="},
    {Combiner::kProd, "(x * y)", "*="},
    {Combiner::kMax, "max(x, y)", "max="},
    {Combiner::kMin, "min(x, y)", "min="},
};

constexpr const CombinerSpelling& spelling_of(Combiner combiner) {
  const CombinerSpelling* row = kCombinerSpellings;
  while (row->combiner != combiner) ++row;
  return *row;
}

}  // namespace pruner
