#include "tensor/scalar_ops.h"

#include <gtest/gtest.h>

#include <cstdint>

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

TEST(ScalarOps, OfAnUnorderedPairTheFirstIsTaken) {
  const double nan = std::nan("");
  EXPECT_TRUE(std::isnan(value_of<double>(BinaryOp::kMax, nan, 1.0)));
  EXPECT_EQ(value_of<double>(BinaryOp::kMax, 1.0, nan), 1);
  EXPECT_TRUE(value_of<bool>(BinaryOp::kNe, nan, nan));
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
}

}  // namespace
}  // namespace pruner
