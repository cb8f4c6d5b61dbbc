// label: codegen
// Every function of doubles, as vectors and as scalars, against long double on some 100 000
// numbers: all magnitudes, both signs, subnormals, multiples of pi/2 and the special values.
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

using Real = long double;

struct Function {
  const char* name;
  Intrinsic function;
  Real (*reference)(Real x, Real y);
  double max_ulp;
  bool two_arguments = false;
};

const Function kFunctions[] = {
    {"exp", Intrinsic::kExp, [](Real x, Real) { return std::exp(x); }, 1.5},
    {"log", Intrinsic::kLog, [](Real x, Real) { return std::log(x); }, 1.5},
    {"sqrt", Intrinsic::kSqrt, [](Real x, Real) { return std::sqrt(x); }, 0.51},
    {"rsqrt", Intrinsic::kRsqrt, [](Real x, Real) { return 1 / std::sqrt(x); }, 1.5},
    {"tanh", Intrinsic::kTanh, [](Real x, Real) { return std::tanh(x); }, 3},
    {"sigmoid",
     Intrinsic::kSigmoid,
     [](Real x, Real) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); },
     3},
    {"erf", Intrinsic::kErf, [](Real x, Real) { return std::erf(x); }, 2},
    {"pow", Intrinsic::kPow, [](Real x, Real y) { return std::pow(x, y); }, 2, true},
    {"abs", Intrinsic::kAbs, [](Real x, Real) { return std::fabs(x); }, 0},
    {"floor", Intrinsic::kFloor, [](Real x, Real) { return std::floor(x); }, 0},
    {"ceil", Intrinsic::kCeil, [](Real x, Real) { return std::ceil(x); }, 0},
    {"round", Intrinsic::kRound, [](Real x, Real) { return std::nearbyint(x); }, 0},
    {"sin", Intrinsic::kSin, [](Real x, Real) { return std::sin(x); }, 2.5},
    {"cos", Intrinsic::kCos, [](Real x, Real) { return std::cos(x); }, 2.5},
    {"expm1", Intrinsic::kExpm1, [](Real x, Real) { return std::expm1(x); }, 2},
    {"log1p", Intrinsic::kLog1p, [](Real x, Real) { return std::log1p(x); }, 3},
    {"normal_cdf",
     Intrinsic::kNormalCdf,
     [](Real x, Real) { return std::erfc(-x / std::sqrt(Real{2})) / 2; },
     6},
};

constexpr int64_t kCount = 1 << 17;

// y[i] = f(x[i], z[i]), 8 at a time or one by one.
Program elementwise(const Function& f, int lanes) {
  ProgramBuilder b(f.name);
  const TensorId x = b.input("x", {kCount}, DType::kFloat64),
                 z = b.input("z", {kCount}, DType::kFloat64),
                 y = b.output("y", {kCount}, DType::kFloat64);
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

// Distance from the exact value in units of the last place of a double there.
double ulps(double value, Real exact) {
  const auto rounded = static_cast<double>(exact);
  if (std::isnan(value) || std::isnan(exact))
    return std::isnan(value) == std::isnan(exact) ? 0 : 1e9;
  if (std::isinf(value) || std::isinf(rounded)) {
    if (value == rounded) return 0;
    // The last double before infinity may stand for it.
    return std::fabs(rounded) > 1.797e308 && std::fabs(value) > 1.797e308 ? 1 : 1e9;
  }
  const int exponent = exact == 0 ? -1022 : std::max(std::ilogb(exact), -1022);
  return static_cast<double>(std::fabs(value - exact) / std::ldexp(Real{1}, exponent - 52));
}

// Arguments of all magnitudes, and the special ones.
void fill(const Function& f, std::span<double> x, std::span<double> z) {
  Rng rng(1);
  const auto any = [&] { return std::bit_cast<double>(rng.next()); };
  const auto uniform = [&](double low, double high) { return low + (high - low) * rng.uniform(); };
  for (size_t i = 0; i < x.size(); ++i) {
    const double points[] = {any(),
                             uniform(-2, 2),
                             uniform(-760, 760),
                             uniform(-12, 12),
                             std::nearbyint(uniform(-1e6, 1e6)) * M_PI_2};
    x[i] = points[i % 5];
    z[i] = i % 8 < 4 ? uniform(-60, 60) : i % 16 < 8 ? any() : std::nearbyint(uniform(-20, 20));
    if (f.two_arguments && i % 3 != 0) x[i] = std::fabs(x[i]);
  }
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const double special[] = {0.,
                            -0.,
                            1.,
                            -1.,
                            2.,
                            -3.,
                            0.5,
                            inf,
                            -inf,
                            nan,
                            5e-324,
                            -5e-324,
                            1.7e308,
                            -1.7e308,
                            2.5,
                            -0.5,
                            1048575.9,
                            1048576.5,
                            1e22,
                            1e300,
                            6381956970095103.0 * 0x1p797,
                            0x1p54,
                            1e-310,
                            0.9999999999999999,
                            1.0000000000000002};
  size_t at = 0;
  for (const double a : special) {
    for (const double b : special) {
      x[at] = a;
      z[at++] = b;
    }
  }
}

class DoubleMathTest : public testing::TestWithParam<Function> {};

TEST_P(DoubleMathTest, IsCloseToLongDouble) {
  const Function& f = GetParam();
  std::vector<Tensor> args(3, Tensor());
  for (Tensor& tensor : args) tensor = Tensor(DType::kFloat64, {kCount});
  const auto x = args[0].values<double>(), z = args[1].values<double>(),
             y = args[2].values<double>();
  fill(f, x, z);
  for (const int lanes : {8, 1}) {
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
      }
      EXPECT_LE(worst, f.max_ulp) << f.name << "(" << x[where] << ", " << z[where] << ") is "
                                  << y[where] << ", not " << f.reference(x[where], z[where])
                                  << " for " << mcpu << " x" << lanes;
      RecordProperty("ulp", std::to_string(worst));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, DoubleMathTest, testing::ValuesIn(kFunctions), [](const auto& info) {
  return info.param.name;
});

}  // namespace
}  // namespace pruner
