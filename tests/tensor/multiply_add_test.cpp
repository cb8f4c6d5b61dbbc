#include "tensor/multiply_add.h"

#include <gtest/gtest.h>

namespace pruner {
namespace {

Expr number(int32_t tensor, DType dtype = DType::kFloat32) {
  return load(TensorId{tensor}, {Expr(0)}, dtype);
}

TEST(MultiplyAdd, IsFoundWithItsOperands) {
  const Expr a = number(0), b = number(1), c = number(2);
  const std::optional<MultiplyAdd> found = as_multiply_add(multiply_add(a, b, c));
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->a.same_as(a) && found->b.same_as(b) && found->c.same_as(c));
  const auto constant = as_multiply_add(multiply_add(a, float_imm(0.5), float_imm(-1)));
  ASSERT_TRUE(constant);
  EXPECT_EQ(as<FloatImm>(constant->c)->value, -1);
}

TEST(MultiplyAdd, IsNothingElse) {
  const Expr a = number(0), wide = number(1, DType::kFloat64);
  EXPECT_FALSE(as_multiply_add(a * a + a));
  EXPECT_FALSE(as_multiply_add(cast(DType::kFloat32, wide * wide + wide)));
  // 0.1 of float64 is no float32.
  EXPECT_FALSE(as_multiply_add(
      cast(DType::kFloat32,
           cast(DType::kFloat64, a) * float_imm(0.1, DType::kFloat64) + cast(DType::kFloat64, a))));
}

}  // namespace
}  // namespace pruner
