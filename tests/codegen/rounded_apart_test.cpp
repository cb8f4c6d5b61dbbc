// label: codegen
// A product is rounded before it is added where an operator that jumps reads the sum.
#include <gtest/gtest.h>

#include <cmath>

#include "codegen/kernels.h"
#include "codegen/run.h"
#include "support/rng.h"
#include "tensor/multiply_add.h"

namespace pruner {
namespace {

constexpr int64_t kCount = 4096;
constexpr float kThird = 1.0f / 3;

// y[i] = body(x[i]), 16 at a time.
Program elementwise(Expr (*body)(const Expr&)) {
  ProgramBuilder b("rounded");
  const TensorId x = b.input("x", {kCount}), y = b.output("y", {kCount});
  b.program.body = b.serial(kCount / 16, [&](Expr o) {
    return b.vectorize(16, 16, [&](Expr l) {
      const Expr i = o * Expr(16) + l;
      return b.store(y, {i}, body(b.read(x, {i})));
    });
  });
  return b.program;
}

void expect_values(Expr (*body)(const Expr&), float (*expected)(float)) {
  std::vector<Tensor> args = {Tensor(DType::kFloat32, {kCount}), Tensor(DType::kFloat32, {kCount})};
  const auto x = args[0].values<float>(), y = args[1].values<float>();
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) - 1000;
  for (const char* mcpu : {"", "haswell", "x86-64-v2"}) {
    const Result<Artifact> artifact = compile(elementwise(body), cpu_target(mcpu), "kernel");
    ASSERT_TRUE(artifact.ok()) << artifact.error().message();
    const auto kernel = load_kernel(artifact->object, "kernel");
    ASSERT_TRUE(kernel.ok()) << kernel.error().message();
    call_kernel((*kernel)->entry(), args, 0);
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(y[i], expected(x[i])) << "of " << x[i] << " for " << mcpu;
  }
}

Expr third_less_one(const Expr& x) { return x * float_imm(kThird) + float_imm(-1); }
float third_less_one(float x) {
  volatile float product = x * kThird;
  return product - 1;
}

TEST(RoundedApart, UnderACeiling) {
  expect_values([](const Expr& x) { return call(Intrinsic::kCeil, {third_less_one(x)}); },
                [](float x) { return std::ceil(third_less_one(x)); });
}

TEST(RoundedApart, UnderACastToIntegersAndAMaximum) {
  expect_values(
      [](const Expr& x) {
        const Expr whole = cast(DType::kInt32, max(third_less_one(x), float_imm(-5)));
        return cast(DType::kFloat32, whole);
      },
      [](float x) { return std::trunc(std::max(third_less_one(x), -5.0f)); });
}

TEST(RoundedApart, UnderAComparison) {
  expect_values(
      [](const Expr& x) {
        return select(
            binary(BinaryOp::kGt, third_less_one(x), float_imm(0)), float_imm(1), float_imm(2));
      },
      [](float x) { return third_less_one(x) > 0 ? 1.0f : 2.0f; });
}

// One rounding is what is asked for: under a ceiling, too.
TEST(RoundedApart, ButNotAMultiplyAdd) {
  if (!__builtin_cpu_supports("fma")) GTEST_SKIP() << "no fused multiply and add";
  expect_values(
      [](const Expr& x) {
        return call(Intrinsic::kCeil, {multiply_add(x, float_imm(kThird), float_imm(-1))});
      },
      [](float x) { return std::ceil(std::fmaf(x, kThird, -1)); });
}

}  // namespace
}  // namespace pruner
