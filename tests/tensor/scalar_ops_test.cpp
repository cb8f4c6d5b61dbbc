#include "tensor/scalar_ops.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "golden.h"
#include "tensor/parse_expr.h"

namespace pruner {
namespace {

TEST(ScalarOps, StandInTheOrderOfTheirEnumerators) {
  for (size_t i = 0; i < kBinaryOps.size(); ++i)
    EXPECT_EQ(static_cast<size_t>(kBinaryOps[i].op), i) << kBinaryOps[i].text;
  for (size_t i = 0; i < kIntrinsics.size(); ++i)
    EXPECT_EQ(static_cast<size_t>(kIntrinsics[i].op), i) << kIntrinsics[i].text;
}

TEST(ScalarOps, IntegersWrapAndDivideDown) {
  const auto of = [](BinaryOp op, int64_t x, int64_t y) { return value_of<int64_t>(op, x, y); };
  EXPECT_EQ(of(BinaryOp::kAdd, INT64_MAX, 1), INT64_MIN);
  EXPECT_EQ(of(BinaryOp::kMul, INT64_MIN, -1), INT64_MIN);
  for (const int64_t x : {-7, -6, 0, 6, 7}) {
    for (const int64_t y : {-3, -1, 1, 3}) {
      const int64_t quotient = of(BinaryOp::kFloorDiv, x, y);
      const int64_t remainder = of(BinaryOp::kFloorMod, x, y);
      EXPECT_EQ(quotient * y + remainder, x);
      EXPECT_TRUE(remainder == 0 || (remainder < 0) == (y < 0)) << x << " % " << y;
    }
  }
  EXPECT_EQ(of(BinaryOp::kFloorDiv, 5, 0), 5);
  EXPECT_EQ(of(BinaryOp::kFloorMod, 5, 0), 0);
  EXPECT_EQ(of(BinaryOp::kFloorDiv, INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(of(BinaryOp::kFloorMod, INT64_MIN, -1), 0);
}

TEST(ScalarOps, ExtremesOfNanAreNan) {
  const double nan = std::nan("");
  for (const BinaryOp op : {BinaryOp::kMin, BinaryOp::kMax}) {
    EXPECT_TRUE(std::isnan(value_of<double>(op, nan, 1.0)));
    EXPECT_TRUE(std::isnan(value_of<double>(op, 1.0, nan)));
  }
  EXPECT_TRUE(value_of<bool>(BinaryOp::kNe, nan, nan));
}

TEST(ScalarOps, RemaindersOfFloatsAreExact) {
  const auto of = [](double x, double y) { return value_of<double>(BinaryOp::kFloorMod, x, y); };
  EXPECT_EQ(of(5.5, 3), 2.5);
  EXPECT_EQ(of(-5.5, 3), 0.5);
  EXPECT_EQ(of(5.5, -3), -0.5);
  EXPECT_EQ(of(1e20, 3), 1);
  EXPECT_EQ(of(1, INFINITY), 1);
  EXPECT_TRUE(std::isnan(of(INFINITY, 2)));
  EXPECT_TRUE(std::isnan(of(1, 0)));
}

TEST(ScalarOps, FloatsBecomeIntegersAsX86Converts) {
  EXPECT_EQ(truncate_to(DType::kInt64, -1.9), -1);
  EXPECT_EQ(truncate_to(DType::kInt32, 2147483647), 2147483647);
  EXPECT_EQ(truncate_to(DType::kInt8, 300.7), 44);
  EXPECT_EQ(truncate_to(DType::kUInt8, -1), 255);
  for (const double none : {std::nan(""), HUGE_VAL, -HUGE_VAL, 1e20}) {
    EXPECT_EQ(truncate_to(DType::kInt64, none), INT64_MIN) << none;
    EXPECT_EQ(truncate_to(DType::kInt32, none), INT32_MIN) << none;
    EXPECT_EQ(truncate_to(DType::kInt8, none), 0) << none;
    EXPECT_EQ(truncate_to(DType::kBool, none), 1) << none;
  }
}

TEST(ScalarOps, ConstantsFoldToWhatTheRowsCompute) {
  for (const BinaryFacts& facts : kBinaryOps) {
    if (facts.op == BinaryOp::kDiv || facts.op == BinaryOp::kAnd || facts.op == BinaryOp::kOr)
      continue;
    const Expr folded = binary(facts.op, int_imm(-7), int_imm(3));
    ASSERT_NE(as_int(folded), nullptr) << facts.text;
    EXPECT_EQ(*as_int(folded), (value_of<int64_t, int64_t>(facts.op, -7, 3))) << facts.text;
  }
  EXPECT_EQ(as_int(int_imm(INT64_MAX) + 1), nullptr);  // it would wrap
}

TEST(ScalarOps, EachSpellingIsRead) {
  ComputeDag dag;
  const ExprScope scope{&dag, {}, {}};
  const auto value = [&](const std::string& text) {
    const Result<Expr> e = parse_expr(text, scope);
    EXPECT_TRUE(e.ok()) << text << ": " << (e.ok() ? "" : e.error().message());
    return e.ok() && as_int(*e) ? *as_int(*e) : -1;
  };
  EXPECT_EQ(value("7 // 2"), 3);
  EXPECT_EQ(value("floordiv(7, 2)"), 3);
  EXPECT_EQ(value("7 %% 4"), 3);
  EXPECT_EQ(value("7 % 4"), 3);
  EXPECT_EQ(value("floormod(7, 4)"), 3);
  EXPECT_EQ(value("max(1, 3)"), 3);
  EXPECT_EQ(value("xor(6, 3)"), 5);
  EXPECT_ERROR(parse_expr("xor(6.0, 3.0)", scope), "integers in xor()");
}

}  // namespace
}  // namespace pruner
