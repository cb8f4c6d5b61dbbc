// What an expression computes, counted as Ansor's features count it (appendix B; Pruner, section
// 4.3): floats and integers apart by the type of an operation's left operand, min and max as
// comparisons, index arithmetic of loads included.
#pragma once

#include <array>
#include <vector>

#include "tensor/expr.h"

namespace pruner {

/// In the order of the statement features. A multiply-add is never recognised as one.
enum class Operation : uint8_t {
  kFloatMad,
  kFloatAddSub,
  kFloatMul,
  kFloatDivMod,
  kFloatCompare,
  kFloatMath,  // calls, and the choice of a guarded value
  kFloatOther,
  kIntMad,
  kIntAddSub,
  kIntMul,
  kIntDivMod,
  kIntCompare,
  kIntMath,
  kIntOther,
  kLogic,
  kSelect,
};
inline constexpr int kOperations = 16;

struct OperationCounts {
  std::array<int, kOperations> of{};

  int& operator[](Operation op) { return of[static_cast<size_t>(op)]; }
  int operator[](Operation op) const { return of[static_cast<size_t>(op)]; }
  /// Additions, subtractions, multiplications and divisions of floats: what Pruner's symbols count.
  int float_arithmetic() const {
    return (*this)[Operation::kFloatAddSub] + (*this)[Operation::kFloatMul] +
           (*this)[Operation::kFloatDivMod];
  }
  /// All operations of floats, comparisons and calls included.
  int float_operations() const {
    return float_arithmetic() + (*this)[Operation::kFloatCompare] + (*this)[Operation::kFloatMath] +
           (*this)[Operation::kFloatOther];
  }
  friend bool operator==(const OperationCounts&, const OperationCounts&) = default;
};

/// Of one evaluation; nothing for an empty expression.
OperationCounts count_operations(const Expr& e);
/// By variable: how often it stands in the expression. Variables from `variables` on are passed
/// over.
std::vector<int> count_variables(const Expr& e, size_t variables);

}  // namespace pruner
