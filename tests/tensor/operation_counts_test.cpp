#include "tensor/operation_counts.h"

#include <gtest/gtest.h>

namespace pruner {
namespace {

Expr iterator(int number) { return make_var(VarId{number}, "i"); }

TEST(OperationCounts, TellsFloatsFromIndices) {
  const Expr read = load(TensorId{0}, {iterator(0) * Expr(4) + iterator(1)}, DType::kFloat32);
  const OperationCounts counts = count_operations(max(read * read + read, float_imm(0)));
  EXPECT_EQ(counts[Operation::kFloatAddSub], 1);
  EXPECT_EQ(counts[Operation::kFloatMul], 1);
  EXPECT_EQ(counts[Operation::kFloatCompare], 1);
  EXPECT_EQ(counts[Operation::kIntAddSub], 3);  // the index of each load takes one
  EXPECT_EQ(counts[Operation::kIntMul], 3);
  EXPECT_EQ(counts.float_arithmetic(), 2);
  EXPECT_EQ(counts.float_operations(), 3);
}

// The reference counts a guarded read as a call, too.
TEST(OperationCounts, AGuardIsACallAndItsConditionIntegers) {
  const Expr read = load(TensorId{0}, {iterator(0)}, DType::kFloat32);
  const Expr inside = iterator(0) >= Expr(1) && iterator(0) < Expr(9);
  const OperationCounts counts = count_operations(select(inside, read, float_imm(0)));
  EXPECT_EQ(counts[Operation::kFloatMath], 1);
  EXPECT_EQ(counts[Operation::kIntCompare], 2);
  EXPECT_EQ(counts[Operation::kLogic], 1);
  EXPECT_EQ(count_operations(Expr()), OperationCounts());
}

TEST(OperationCounts, CountsWhereAVariableStands) {
  const Expr e = iterator(0) + iterator(1) * iterator(0) + iterator(7);
  EXPECT_EQ(count_variables(e, 3), (std::vector<int>{2, 1, 0}));
}

}  // namespace
}  // namespace pruner
