#include "tensor/expr.h"

#include <gtest/gtest.h>

#include <limits>

namespace pruner {
namespace {

const Expr i = make_var(VarId{0}, "i"), j = make_var(VarId{1}, "j");
const Expr x = load(TensorId{0}, {i}, DType::kFloat32);
const Expr n32 = load(TensorId{1}, {i}, DType::kInt32);

std::string text(const Expr& e) {
  return print(e, [](TensorId id) { return "t" + std::to_string(id.value); });
}

TEST(Binary, FoldsConstants) {
  EXPECT_EQ(text(Expr(7) + 5), "12");
  EXPECT_EQ(text(floor_div(Expr(-7), 2)), "-4");
  EXPECT_EQ(text(floor_mod(Expr(-7), 2)), "1");
  EXPECT_EQ(text(max(Expr(3), 5) * min(Expr(3), 5)), "15");
  EXPECT_EQ(text(Expr(3) < 5), "true");
  EXPECT_EQ(text(float_imm(1) / float_imm(4)), "0.25");
  EXPECT_EQ(text((Expr(1) < 2) && (Expr(2) < 1)), "false");
}

TEST(Binary, FoldsIdentitiesOfIntegers) {
  EXPECT_TRUE((i + 0).same_as(i));
  EXPECT_TRUE((0 + i).same_as(i));
  EXPECT_TRUE((i - 0).same_as(i));
  EXPECT_TRUE((i * 1).same_as(i));
  EXPECT_TRUE((1 * i).same_as(i));
  EXPECT_TRUE(floor_div(i, 1).same_as(i));
  EXPECT_EQ(text(i * 0), "0");
  EXPECT_EQ(text(floor_mod(i, 1)), "0");
  EXPECT_TRUE(((Expr(1) < 2) && (i < 3))->op.index() == (i < 3)->op.index());
}

TEST(Binary, KeepsFloatsAsTheyAre) {
  EXPECT_EQ(text(x + float_imm(0)), "(t0[i] + 0.0)");
  EXPECT_EQ(text(x * float_imm(0)), "(t0[i] * 0.0)");
}

TEST(Binary, LeavesWhatDoesNotFitUnfolded) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(text(Expr(most) + 1), "(9223372036854775807 + 1)");
  EXPECT_EQ(text(floor_div(Expr(1), Expr(0))), "(1 // 0)");
  const Expr big = int_imm(2'000'000'000, DType::kInt32);
  EXPECT_EQ((big + big)->dtype, DType::kInt32);
  EXPECT_FALSE(as_int(big + big));
}

TEST(CommonDtype, LetsAnImmediateTakeTheOthersType) {
  EXPECT_EQ((x * 2)->dtype, DType::kFloat32);
  EXPECT_EQ(text(x * 2), "(t0[i] * 2.0)");
  EXPECT_EQ((n32 + 1)->dtype, DType::kInt32);
  EXPECT_EQ((n32 + i)->dtype, DType::kInt64);
  EXPECT_EQ(text(n32 + i), "(cast<int64>(t1[i]) + i)");
  EXPECT_EQ((i < j)->dtype, DType::kBool);
}

TEST(CommonDtype, IsNoneForAFloatWithAnInteger) {
  EXPECT_FALSE(common_dtype(x, i));
  EXPECT_FALSE(common_dtype(i, float_imm(0.5)));
  EXPECT_FALSE(common_dtype(x, load(TensorId{2}, {i}, DType::kFloat16)));
}

TEST(BinaryDeathTest, ChecksItsOperands) {
  EXPECT_DEATH(x + i, "operands of types float32 and int64");
  EXPECT_DEATH(i && j, "a logical operand is not bool");
}

TEST(Select, OfAConstantIsItsBranch) {
  EXPECT_TRUE(select(Expr(1) < 2, i, j).same_as(i));
  EXPECT_TRUE(select(Expr(2) < 1, i, j).same_as(j));
}

TEST(Cast, FoldsConstantsAndItself) {
  EXPECT_TRUE(cast(DType::kInt64, i).same_as(i));
  EXPECT_EQ(text(cast(DType::kFloat32, 3)), "3.0");
  EXPECT_EQ(text(cast(DType::kInt32, float_imm(-2.7))), "-2");
  EXPECT_EQ(text(cast(DType::kInt8, Expr(300))), "cast<int8>(300)");
  EXPECT_EQ(text(cast(DType::kBool, Expr(7))), "true");
}

TEST(StructuralEqual, ComparesMeaningNotIdentity) {
  EXPECT_TRUE(structural_equal(i * 2 + j, i * 2 + j));
  EXPECT_FALSE(structural_equal(i * 2 + j, i * 2 + i));
  EXPECT_FALSE(structural_equal(float_imm(1), Expr(1)));
  EXPECT_FALSE(structural_equal(x, load(TensorId{1}, {i}, DType::kFloat32)));
  EXPECT_FALSE(structural_equal(call(Intrinsic::kExp, {x}), call(Intrinsic::kLog, {x})));
}

TEST(Rewrite, SharesWhatDoesNotChange) {
  const Expr e = max(x, float_imm(0)) + x;
  EXPECT_TRUE(rewrite(e, [](const Expr&) { return Expr(); }).same_as(e));
  const Expr doubled =
      rewrite(e, [](const Expr& node) { return as<Load>(node) ? node * 2 : Expr(); });
  EXPECT_EQ(text(doubled), "(max((t0[i] * 2.0), 0.0) + (t0[i] * 2.0))");
}

TEST(Substitute, IsSimultaneousAlsoWhereASumFoldsToOneOfItsTerms) {
  const Expr x = make_var(VarId{0}, "x"), y = make_var(VarId{1}, "y"), z = make_var(VarId{2}, "z");
  // x -> y and y -> 0 and z -> 7 in x + y: the y that x became is not replaced again.
  EXPECT_TRUE(structural_equal(substitute(x + y, {y, Expr(0), Expr(7)}), y));
  EXPECT_TRUE(structural_equal(substitute(x + y, {z, Expr(0), Expr(7)}), z));
}

TEST(Substitute, ReplacesVariablesAndFolds) {
  EXPECT_EQ(text(substitute(i * 4 + j, {Expr(2), Expr()})), "(8 + j)");
  EXPECT_EQ(text(substitute(x, {j + 1})), "t0[(j + 1)]");
}

TEST(Visit, GoesParentsFirst) {
  std::string seen;
  visit(x + float_imm(1), [&](const Expr& e) { seen += text(e) + ";"; });
  EXPECT_EQ(seen, "(t0[i] + 1.0);t0[i];i;1.0;");
}

}  // namespace
}  // namespace pruner
