// label: codegen
// Every function, as vectors and as scalars, against double precision on more than a million
// floats: all magnitudes, both signs, subnormals, and the special values.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "codegen/codegen.h"
#include "codegen/kernels.h"
#include "codegen/loader.h"
#include "support/rng.h"

namespace pruner {
namespace {

struct Function {
  const char* name;
  Intrinsic function;
  double (*reference)(double x, double y);
  double max_ulp;
  bool two_arguments = false;
};

const Function kFunctions[] = {
    {"exp", Intrinsic::kExp, [](double x, double) { return std::exp(x); }, 1.5},
    {"log", Intrinsic::kLog, [](double x, double) { return std::log(x); }, 1.5},
    {"sqrt", Intrinsic::kSqrt, [](double x, double) { return std::sqrt(x); }, 0.51},
    {"rsqrt", Intrinsic::kRsqrt, [](double x, double) { return 1 / std::sqrt(x); }, 1.5},
    {"tanh", Intrinsic::kTanh, [](double x, double) { return std::tanh(x); }, 3},
    {"sigmoid",
     Intrinsic::kSigmoid,
     [](double x, double) {
       return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
     },
     3},
    {"erf", Intrinsic::kErf, [](double x, double) { return std::erf(x); }, 2},
    {"pow", Intrinsic::kPow, [](double x, double y) { return std::pow(x, y); }, 1, true},
    {"abs", Intrinsic::kAbs, [](double x, double) { return std::fabs(x); }, 0},
    {"floor", Intrinsic::kFloor, [](double x, double) { return std::floor(x); }, 0},
    {"ceil", Intrinsic::kCeil, [](double x, double) { return std::ceil(x); }, 0},
    {"round", Intrinsic::kRound, [](double x, double) { return std::nearbyint(x); }, 0},
    {"sin", Intrinsic::kSin, [](double x, double) { return std::sin(x); }, 2},
    {"cos", Intrinsic::kCos, [](double x, double) { return std::cos(x); }, 2},
    {"tan", Intrinsic::kTan, [](double x, double) { return std::tan(x); }, 4},
    {"asin", Intrinsic::kAsin, [](double x, double) { return std::asin(x); }, 4},
    {"acos", Intrinsic::kAcos, [](double x, double) { return std::acos(x); }, 4},
    {"atan", Intrinsic::kAtan, [](double x, double) { return std::atan(x); }, 4},
    {"sinh", Intrinsic::kSinh, [](double x, double) { return std::sinh(x); }, 4},
    {"cosh", Intrinsic::kCosh, [](double x, double) { return std::cosh(x); }, 4},
    {"asinh", Intrinsic::kAsinh, [](double x, double) { return std::asinh(x); }, 4},
    {"acosh", Intrinsic::kAcosh, [](double x, double) { return std::acosh(x); }, 4},
    {"atanh", Intrinsic::kAtanh, [](double x, double) { return std::atanh(x); }, 4},
    {"expm1", Intrinsic::kExpm1, [](double x, double) { return std::expm1(x); }, 2},
    {"log1p", Intrinsic::kLog1p, [](double x, double) { return std::log1p(x); }, 2},
    {"normal_cdf",
     Intrinsic::kNormalCdf,
     [](double x, double) { return 0.5 * std::erfc(-x * M_SQRT1_2); },
     5.5},  // 4 with FMA
    {"tf32", Intrinsic::kTf32, [](double x, double) { return round_to_tf32(x); }, 0},
};

constexpr int64_t kCount = 1 << 20;

// y[i] = f(x[i], z[i]), 16 at a time or one by one.
Program elementwise(const Function& f, int lanes) {
  ProgramBuilder b(f.name);
  const TensorId x = b.input("x", {kCount}), z = b.input("z", {kCount}),
                 y = b.output("y", {kCount});
  const auto body = [&](Expr i) {
    std::vector<Expr> args = {b.read(x, {i})};
    if (f.two_arguments) args.push_back(b.read(z, {i}));
    return b.store(y, {i}, call(f.function, args));
  };
  b.program.body = lanes == 1 ? b.serial(kCount, body) : b.serial(kCount / lanes, [&](Expr o) {
    return b.vectorize(lanes, lanes, [&](Expr l) { return body(o * Expr(lanes) + l); });
  });
  return b.program;
}

float any_float(Rng& rng) { return std::bit_cast<float>(static_cast<uint32_t>(rng.next())); }

// Distance from the exact value in units of the last place of a float there.
double ulps(float value, double exact) {
  const auto rounded = static_cast<float>(exact);
  if (std::isnan(value) || std::isnan(exact))
    return std::isnan(value) == std::isnan(exact) ? 0 : 1e9;
  if (std::isinf(value) || std::isinf(rounded)) {
    if (value == rounded) return 0;
    // The last float before infinity may stand for it.
    return std::fabs(exact) > 3.4028e38 && std::fabs(value) > 3.4028e38 ? 1 : 1e9;
  }
  const int exponent = exact == 0 ? -126 : std::max(std::ilogb(exact), -126);
  return std::fabs(value - exact) / std::ldexp(1, exponent - 23);
}

class MathTest : public testing::TestWithParam<Function> {};

TEST_P(MathTest, IsCloseToDoublePrecision) {
  const Function& f = GetParam();
  Rng rng(1);
  std::vector<Tensor> args = {Tensor(DType::kFloat32, {kCount}),
                              Tensor(DType::kFloat32, {kCount}),
                              Tensor(DType::kFloat32, {kCount})};
  const auto x = args[0].values<float>(), z = args[1].values<float>(), y = args[2].values<float>();
  for (size_t i = 0; i < static_cast<size_t>(kCount); ++i) {
    const auto uniform = [&](double low, double high) {
      return static_cast<float>(low + (high - low) * rng.uniform());
    };
    const float points[] = {any_float(rng), uniform(-2, 2), uniform(-110, 110), uniform(-12, 12)};
    x[i] = points[i % 4];
    z[i] = i % 8 < 4    ? uniform(-6, 6)
           : i % 16 < 8 ? any_float(rng)
                        : std::nearbyint(uniform(-20, 20));
    if (f.two_arguments && i % 3 != 0) x[i] = std::fabs(x[i]);
  }
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  const float special[] = {0.f,  -0.f,  1.f,      -1.f,    2.f,     -3.f,      0.5f,
                           inf,  -inf,  nan,      1e-45f,  -1e-45f, 3.4e38f,   -3.4e38f,
                           2.5f, -0.5f, 65535.9f, 65536.f, 1e30f,   16777216.f};
  size_t at = 0;
  for (const float a : special) {
    for (const float b : special) {
      x[at] = a;
      z[at++] = b;
    }
  }
  for (const int lanes : {16, 1}) {
    for (const char* mcpu : {"", "haswell", "x86-64-v2", "x86-64"}) {
      const Program program = elementwise(f, lanes);
      const Result<Artifact> artifact = compile(program, cpu_target(mcpu), "kernel");
      ASSERT_TRUE(artifact.ok()) << artifact.error().message();
      const auto kernel = load_kernel(artifact->object, "kernel");
      ASSERT_TRUE(kernel.ok()) << kernel.error().message();
      call_kernel((*kernel)->entry(), args, 0);
      double worst = 0;
      size_t where = 0;
      for (size_t i = 0; i < static_cast<size_t>(kCount); ++i) {
        const double error = ulps(y[i], f.reference(x[i], z[i]));
        if (error > worst) worst = error, where = i;
        if (y[i] == 0 && x[i] == 0 && f.reference(x[i], z[i]) == 0) {
          EXPECT_EQ(std::signbit(y[i]), std::signbit(f.reference(x[i], z[i])))
              << f.name << "(" << x[i] << ", " << z[i] << ") for " << mcpu << " x" << lanes;
        }
      }
      EXPECT_LE(worst, f.max_ulp) << f.name << "(" << x[where] << ", " << z[where] << ") is "
                                  << y[where] << ", not " << f.reference(x[where], z[where])
                                  << " for " << mcpu << " x" << lanes;
      RecordProperty("ulp", std::to_string(worst));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, MathTest, testing::ValuesIn(kFunctions), [](const auto& info) {
  return info.param.name;
});

}  // namespace
}  // namespace pruner
