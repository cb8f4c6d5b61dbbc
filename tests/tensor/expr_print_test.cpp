#include <gtest/gtest.h>

#include "tensor/expr.h"

namespace pruner {
namespace {

const Expr i = make_var(VarId{0}, "i");
const Expr x = load(TensorId{0}, {i, 0}, DType::kFloat32);

std::string text(const Expr& e) {
  return print(e, [](TensorId) { return "x"; });
}

TEST(PrintExpr, WritesOperatorsAsTvm) {
  EXPECT_EQ(text(floor_mod(floor_div(i, 2), 18)), "((i // 2) %% 18)");
  EXPECT_EQ(text(max(x, float_imm(0))), "max(x[i, 0], 0.0)");
  EXPECT_EQ(text(i >= 1 && i < 57), "((i >= 1) && (i < 57))");
  EXPECT_EQ(text(binary(BinaryOp::kOr, i < 1, binary(BinaryOp::kEq, i, 3))),
            "((i < 1) || (i == 3))");
  EXPECT_EQ(text(cast(DType::kFloat32, i)), "cast<float32>(i)");
  EXPECT_EQ(text(call(Intrinsic::kExp, {x})), "tir.exp(x[i, 0])");
  EXPECT_EQ(text(call(Intrinsic::kPow, {x, float_imm(2)})), "tir.pow(x[i, 0], 2.0)");
  EXPECT_EQ(text(call(Intrinsic::kNot, {i < 1})), "!(i < 1)");
  EXPECT_EQ(text(load(TensorId{0}, {}, DType::kFloat32)), "x[]");
}

TEST(PrintExpr, SelectsWithLoadsAreIfThenElse) {
  EXPECT_EQ(text(select(i < 3, x, float_imm(0))), "tir.if_then_else((i < 3), x[i, 0], 0.0)");
  EXPECT_EQ(text(select(i < 3, float_imm(1), float_imm(0))), "select((i < 3), 1.0, 0.0)");
}

TEST(PrintExpr, WritesFloatsAsPython) {
  EXPECT_EQ(text(float_imm(0.5)), "0.5");
  EXPECT_EQ(text(float_imm(-9)), "-9.0");
  EXPECT_EQ(text(float_imm(100000)), "100000.0");
  EXPECT_EQ(text(float_imm(0.000118534705686654)), "0.000118534705686654");
  EXPECT_EQ(text(float_imm(5.12229709037114e-08)), "5.12229709037114e-08");
  EXPECT_EQ(text(float_imm(-3.402823466385289e+38)), "-3.402823466385289e+38");
  EXPECT_EQ(text(float_imm(1e16)), "1e+16");
}

}  // namespace
}  // namespace pruner
