// Counts the operations of an expression as Ansor's features do (appendix B; Pruner, section 4.3).
// The left operand's type tells floats and integers apart. min and max count as comparisons; index
// arithmetic of loads is included.
#pragma once

#include <array>
#include <vector>

#include "tensor/expr.h"

namespace pruner {

/// The operations in the order of the statement features. No operation counts as a multiply-add.
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

/// Counts the operations of one evaluation; an empty expression has none.
OperationCounts count_operations(const Expr& e);
/// Returns how often each variable stands in the expression. Variables from `variables` on are
/// passed over.
std::vector<int> count_variables(const Expr& e, size_t variables);

}  // namespace pruner
