#include "tensor/expr.h"

#include <gtest/gtest.h>

#include <cmath>
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

// Written out, it has 2^steps loads.
Expr doubled(int steps) {
  Expr e = load(TensorId{0}, {i + 1}, DType::kFloat32);
  for (int step = 0; step < steps; ++step) e = e + e;
  return e;
}

TEST(Rewrite, RewritesWhatIsSharedOnce) {
  int calls = 0;
  const Expr made = rewrite(doubled(300), [&](const Expr& e) {
    ++calls;
    return as<Load>(e) ? load(TensorId{1}, {j}, e->dtype) : Expr();
  });
  EXPECT_LT(calls, 1000);
  int nodes = 0;
  visit(made, [&](const Expr& e) {
    ++nodes;
    const Load* read = as<Load>(e);
    EXPECT_TRUE(read == nullptr || read->tensor.value == 1);
  });
  EXPECT_LT(nodes, 1000) << "what was shared stays shared";
  EXPECT_TRUE(structural_equal(doubled(300), doubled(300)));
  EXPECT_FALSE(structural_equal(doubled(300), made));
}

TEST(Rewrite, RewritesASmallExpressionNodeByNode) {
  int calls = 0;
  rewrite(doubled(3), [&](const Expr&) {
    ++calls;
    return Expr();
  });
  EXPECT_EQ(calls, 7 + 8 * 4);  // sums; loads, each with its index
}

TEST(TreeSize, IsThatOfTheExpressionWrittenOut) {
  EXPECT_EQ(tree_size(x + float_imm(1)), 4);
  EXPECT_EQ(tree_size(doubled(3)), 7 + 8 * 4);
  EXPECT_EQ(tree_size(doubled(3), TensorId{0}, 10), 7 + 8 * 13);
  EXPECT_EQ(tree_size(doubled(60)), 5 * std::pow(2.0, 60) - 1);
}

TEST(VisitUses, CountsEachUse) {
  int loads = 0;
  visit_uses(doubled(10), [&](const Expr& e) { loads += as<Load>(e) != nullptr; });
  EXPECT_EQ(loads, 1024);
}

TEST(Visit, GoesParentsFirst) {
  std::string seen;
  visit(x + float_imm(1), [&](const Expr& e) { seen += text(e) + ";"; });
  EXPECT_EQ(seen, "(t0[i] + 1.0);t0[i];i;1.0;");
}

}  // namespace
}  // namespace pruner
