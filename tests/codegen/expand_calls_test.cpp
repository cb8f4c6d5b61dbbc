// label: codegen
// Conversions of float16 on CPUs with and without instructions for them, beside the tensor
// library's own conversion: every float16, and floats of all magnitudes.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "codegen/codegen.h"
#include "codegen/kernels.h"
#include "codegen/loader.h"
#include "support/rng.h"

namespace pruner {
namespace {

constexpr int64_t kCount = 1 << 19;
constexpr uint32_t kHalves = 1 << 16;

/// y[i] = x[i] as another type, so many at a time.
Program conversion(DType from, DType to, int lanes) {
  ProgramBuilder b("convert");
  const TensorId x = b.input("x", {kCount}, from), y = b.output("y", {kCount}, to);
  const auto body = [&](Expr i) { return b.store(y, {i}, cast(to, b.read(x, {i}))); };
  b.program.body = lanes == 1 ? b.serial(kCount, body) : b.serial(kCount / lanes, [&](Expr o) {
    return b.vectorize(lanes, lanes, [&](Expr l) { return body(o * Expr(lanes) + l); });
  });
  return b.program;
}

class HalfConversions : public testing::TestWithParam<const char*> {
 protected:
  void check(const Tensor& x, DType to) const {
    for (const int lanes : {8, 1}) {
      const Program program = conversion(x.dtype(), to, lanes);
      const Result<Artifact> artifact = compile(program, cpu_target(GetParam()), "kernel");
      ASSERT_TRUE(artifact.ok()) << artifact.error().message();
      const auto kernel = load_kernel(artifact->object, "kernel");
      ASSERT_TRUE(kernel.ok()) << kernel.error().message();
      std::vector<Tensor> args = {x, Tensor(to, {kCount})};
      call_kernel((*kernel)->entry(), args, 0);
      Tensor expected(to, {kCount});
      for (int64_t i = 0; i < kCount; ++i) {
        expected.set(i, x.get(i));
        const double made = args[1].get(i), wanted = expected.get(i);
        if (std::isnan(made) && std::isnan(wanted)) continue;
        ASSERT_TRUE(made == wanted && std::signbit(made) == std::signbit(wanted))
            << x.get(i) << " became " << made << ", not " << wanted << " x" << lanes;
      }
    }
  }
};

TEST_P(HalfConversions, GiveEachHalfAsAFloat) {
  Tensor x(DType::kFloat16, {kCount});
  for (int64_t i = 0; i < kCount; ++i)
    static_cast<uint16_t*>(x.data())[i] = static_cast<uint16_t>(i % kHalves);
  check(x, DType::kFloat32);
  check(x, DType::kFloat64);
}

TEST_P(HalfConversions, RoundFloatsOnce) {
  Rng rng(7);
  Tensor x(DType::kFloat32, {kCount}), wide(DType::kFloat64, {kCount});
  for (int64_t i = 0; i < kCount; ++i) {
    // Any float; one of a float16's magnitude; one right between two float16, and beside it.
    const auto any = static_cast<uint32_t>(rng.next());
    const double near = std::ldexp(1 + rng.uniform(), static_cast<int>(rng.below(44)) - 26);
    const double between = std::ldexp(static_cast<double>(2 * rng.below(2048) + 1), -13);
    const double points[] = {std::bit_cast<float>(any), near, -between, between};
    x.set(i, points[i % 4]);
    const double beside[] = {0, -0x1p-40, 0x1p-40};
    wide.set(i, points[i % 4] * (1 + beside[i % 3]));
  }
  check(x, DType::kFloat16);
  check(wide, DType::kFloat16);
}

INSTANTIATE_TEST_SUITE_P(Cpus, HalfConversions, testing::Values("", "x86-64-v2", "x86-64"));

}  // namespace
}  // namespace pruner
