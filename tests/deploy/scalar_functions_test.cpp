// label: codegen
// Every function of one or two numbers that ONNX defines or torch's table maps, in a module and on
// three kinds of CPUs, against long double: zeros, subnormal, small, large and infinite numbers,
// NaN and random bits. PRUNER_NUMBERS is how many numbers of float32 there are.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "deploy/loaded_module.h"
#include "deploy/module.h"
#include "graph/networks/network_builder.h"
#include "support/rng.h"
#include "support/temporary_folder.h"

namespace pruner {
namespace {

using Real = long double;

struct Function {
  std::string op;
  Real (*exact)(Real x, Real y);
  Attributes attributes = {};
  bool two = false;      // the function takes two numbers
  double floor = 0;      // smaller results count as this large in the error
  double most_ulps = 4;  // bound in units of float32's last place
};

const Real kPi = std::acos(Real{-1});

Real sigmoid(Real x) { return 1 / (1 + std::exp(-x)); }
Real elu(Real x, Real alpha, Real gamma = 1) {
  return x > 0 ? gamma * x : gamma * alpha * std::expm1(x);
}
Real softplus(Real x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }
Real clamp(Real x, Real low, Real high) { return x < low ? low : x > high ? high : x; }
Real number(double value) { return static_cast<float>(value); }  // rounded as in a file
Real greater(Real x, Real y) { return std::isnan(x) || x > y ? x : y; }
Real less(Real x, Real y) { return std::isnan(x) || x < y ? x : y; }

std::vector<Function> functions() {
  return {
      {"Abs", [](Real x, Real) { return std::fabs(x); }},
      {"Acos", [](Real x, Real) { return std::acos(x); }},
      {"Acosh", [](Real x, Real) { return std::acosh(x); }},
      {"Asin", [](Real x, Real) { return std::asin(x); }},
      {"Asinh", [](Real x, Real) { return std::asinh(x); }},
      {"Atan", [](Real x, Real) { return std::atan(x); }},
      {"Atanh", [](Real x, Real) { return std::atanh(x); }},
      {"Ceil", [](Real x, Real) { return std::ceil(x); }},
      {"Celu", [](Real x, Real) { return elu(x, 1); }, {{"alpha", 1.0}}},
      {"Celu", [](Real x, Real) { return x > 0 ? x : 2 * std::expm1(x / 2); }, {{"alpha", 2.0}}},
      {"Cos", [](Real x, Real) { return std::cos(x); }},
      {"Cosh", [](Real x, Real) { return std::cosh(x); }},
      {"Elu", [](Real x, Real) { return elu(x, 1); }},
      {"Erf", [](Real x, Real) { return std::erf(x); }},
      {"Exp", [](Real x, Real) { return std::exp(x); }},
      {"Expm1", [](Real x, Real) { return std::expm1(x); }},
      {"Floor", [](Real x, Real) { return std::floor(x); }},
      // Below -10, where results are less than 1e-22, a few numbers are up to 4.9 units away.
      {"Gelu",
       [](Real x, Real) { return x / 2 * std::erfc(-x / std::sqrt(Real{2})); },
       {},
       false,
       0,
       5},
      // The argument of the sigmoid is rounded: relative to the result, by as much as it is large.
      {"Gelu",
       [](Real x, Real) {
         const Real inner = std::sqrt(2 / kPi) * (x + Real{0.044715} * x * x * x);
         return x * sigmoid(2 * inner);
       },
       {{"approximate", std::string("tanh")}},
       false,
       0x1p-6,
       8},
      // Near their bends the two terms of a line cancel: 1/2 is the larger one.
      {"HardSigmoid",
       [](Real x, Real) { return clamp(number(0.2) * x + Real{0.5}, 0, 1); },
       {},
       false,
       0.5},
      {"HardSwish", [](Real x, Real) { return x * clamp(x / 6 + Real{0.5}, 0, 1); }, {}, false, 1},
      {"LeakyRelu", [](Real x, Real) { return x < 0 ? number(0.01) * x : x; }},
      {"Log", [](Real x, Real) { return std::log(x); }},
      {"Log1p", [](Real x, Real) { return std::log1p(x); }},
      {"Mish", [](Real x, Real) { return x * std::tanh(softplus(x)); }},
      {"Neg", [](Real x, Real) { return -x; }},
      {"Reciprocal", [](Real x, Real) { return 1 / x; }},
      {"Relu", [](Real x, Real) { return x > 0 || std::isnan(x) ? x : 0; }},
      {"Round", [](Real x, Real) { return std::nearbyint(x); }},
      {"Selu",
       [](Real x, Real) {
         return elu(x, number(1.67326319217681884765625), number(1.05070102214813232421875));
       }},
      {"Sigmoid", [](Real x, Real) { return sigmoid(x); }},
      {"Sign", [](Real x, Real) { return x > 0   ? 1
                                         : x < 0 ? -1
                                                 : x; }},
      {"Sin", [](Real x, Real) { return std::sin(x); }},
      {"Sinh", [](Real x, Real) { return std::sinh(x); }},
      {"Softplus", [](Real x, Real) { return softplus(x); }},
      {"Softsign", [](Real x, Real) { return x / (1 + std::fabs(x)); }},
      {"Sqrt", [](Real x, Real) { return std::sqrt(x); }},
      {"Swish", [](Real x, Real) { return x * sigmoid(x); }},
      {"Tan", [](Real x, Real) { return std::tan(x); }},
      {"Tanh", [](Real x, Real) { return std::tanh(x); }},
      {"Add", [](Real x, Real y) { return x + y; }, {}, true},
      {"Sub", [](Real x, Real y) { return x - y; }, {}, true},
      {"Mul", [](Real x, Real y) { return x * y; }, {}, true},
      {"Div", [](Real x, Real y) { return x / y; }, {}, true},
      {"Max", [](Real x, Real y) { return greater(x, y); }, {}, true},
      {"Min", [](Real x, Real y) { return less(x, y); }, {}, true},
      {"Mod", [](Real x, Real y) { return std::fmod(x, y); }, {{"fmod", int64_t{1}}}, true},
      {"Pow", [](Real x, Real y) { return std::pow(x, y); }, {}, true},
  };
}

/// `Digits` has a float type's fraction digits and the exponent of its least normal number.
struct Digits {
  int fraction, least;
};
Digits digits_of(DType dtype) {
  if (dtype == DType::kFloat16) return {10, -14};
  return {dtype == DType::kBFloat16 ? 7 : 23, -126};
}

/// The distance in units of the last place of `exact`, or of `floor` where that is larger.
double ulps_apart(Real found, Real exact, double floor, DType dtype) {
  const Digits digits = digits_of(dtype);
  if (std::isnan(found) || std::isnan(exact))
    return std::isnan(found) == std::isnan(exact) ? 0 : INFINITY;
  const Real most = static_cast<Real>(greatest_float(dtype));
  const Real unit_of_most = std::ldexp(Real{1}, std::ilogb(most) - digits.fraction);
  // The last number before infinity may stand for it, and the other way round.
  if (std::isinf(exact) && found == exact) return 0;
  if (std::isinf(found) != std::isinf(exact)) {
    const Real finite = std::isinf(found) ? exact : found;
    const bool near =
        std::signbit(found) == std::signbit(exact) && std::fabs(finite) > most - 4 * unit_of_most;
    return near || (std::isinf(found) && std::fabs(exact) > most &&
                    std::signbit(found) == std::signbit(exact))
               ? 0
               : INFINITY;
  }
  const Real size = std::max(std::fabs(exact), static_cast<Real>(floor));
  const int exponent = size == 0 ? digits.least : std::max(std::ilogb(size), digits.least);
  return static_cast<double>(std::fabs(found - exact) /
                             std::ldexp(Real{1}, exponent - digits.fraction));
}

bool is_subnormal(Real x) { return x != 0 && std::fabs(x) < 0x1p-126L; }
Real flushed(Real x) { return is_subnormal(x) ? std::copysign(Real{0}, x) : x; }

// Returns whether IEEE 754 gives a zero's sign: the larger or smaller of two zeros may be either.
bool has_sign_of_zero(const Function& f) {
  return f.op != "Max" && f.op != "Min" && f.op != "Relu";
}

// A number times a function, which may be subnormal where the product is not.
bool is_product(const Function& f) {
  return f.op == "Celu" || f.op == "Gelu" || f.op == "Mish" || f.op == "Swish";
}

// Subnormal numbers may be taken for zeros: arguments, results, and what a result is made of.
double error_of(const Function& f, Real x, Real y, Real found, DType dtype) {
  double least = INFINITY;
  found = flushed(found);
  for (const Real a : {x, flushed(x)}) {
    for (const Real b : {y, flushed(y)}) {
      const Real exact = f.exact(a, b);
      const bool vanishes =
          found == 0 && std::fabs(exact) < (is_product(f) ? 0x1p-119L : 0x1p-126L);
      double error = vanishes ? 0 : ulps_apart(found, exact, f.floor, dtype);
      if (vanishes && has_sign_of_zero(f) && std::signbit(found) != std::signbit(exact))
        error = INFINITY;
      least = std::min(least, error);
    }
  }
  return least;
}

struct Numbers {
  Tensor x, y;
};

// Pairs of special numbers, then of each magnitude, then random ones.
Numbers numbers_of(DType dtype, int64_t count) {
  Numbers numbers{Tensor(dtype, {count}), Tensor(dtype, {count})};
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> special = {0,
                                 infinity,
                                 std::nan(""),
                                 greatest_float(dtype),
                                 1,
                                 1.5,
                                 2,
                                 2.5,
                                 3,
                                 0.5,
                                 1.0 / 3,
                                 16777216,
                                 65536,
                                 88.72,
                                 87.4,
                                 103.9,
                                 17.3,
                                 9.02};
  for (int e = -149; e <= 127; e += 4) special.push_back(std::ldexp(1.2345, e));
  for (int e = -44; e <= 38; ++e) special.push_back(std::pow(10.0, e));
  const size_t positive = special.size();
  for (size_t i = 0; i < positive; ++i) special.push_back(-special[i]);
  Rng rng(1);
  const bool all_bits = dtype != DType::kFloat32;
  for (int64_t i = 0; i < count; ++i) {
    const auto uniform = [&](double low, double high) {
      return low + (high - low) * rng.uniform();
    };
    const auto any = [&] {
      if (all_bits) return decode_float(dtype, rng.next() & 0xffff);
      return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(rng.next())));
    };
    const double points[] = {any(), uniform(-2, 2), uniform(-110, 110), uniform(-14, 14)};
    const auto n = static_cast<int64_t>(special.size());
    double x = points[i % 4], y = i % 8 < 4 ? uniform(-6, 6) : any();
    if (all_bits) x = decode_float(dtype, static_cast<uint64_t>(i & 0xffff));
    if (!all_bits && i < n * 8) {
      x = special[static_cast<size_t>(i % n)];
      y = special[static_cast<size_t>(rng.below(n))];
    }
    numbers.x.set(i, x);
    numbers.y.set(i, y);
  }
  return numbers;
}

void expect_right_functions(DType dtype, int64_t count, const Target& target, double most_ulps) {
  const std::vector<Function> all = functions();
  const Numbers numbers = numbers_of(dtype, count);
  NetworkBuilder b("functions");
  const ValueId x = b.input("x", {count}, dtype), y = b.input("y", {count}, dtype);
  std::vector<std::pair<ValueId, std::string>> outputs;
  for (const Function& f : all) {
    const std::vector<ValueId> inputs = f.two ? std::vector{x, y} : std::vector{x};
    outputs.push_back({b.node(f.op, inputs, f.attributes), f.op});
  }
  const Result<Partition> cut = partition(b.finish(outputs), target);
  ASSERT_TRUE(cut.ok()) << cut.error().message();
  const TemporaryFolder folder = *TemporaryFolder::make("");
  const std::string path = folder.path("module.so");
  const auto built = build_module(*cut, target, nullptr, {.jobs = 2, .work_dir = ""}, path);
  ASSERT_TRUE(built.ok()) << built.error().message();
  Result<LoadedModule> module = load_module(path);
  ASSERT_TRUE(module.ok()) << module.error().message();
  const auto found = module->run(std::vector{numbers.x, numbers.y});
  ASSERT_TRUE(found.ok()) << found.error().message();
  for (size_t i = 0; i < all.size(); ++i) {
    const Function& f = all[i];
    double worst = 0;
    int64_t where = 0;
    for (int64_t at = 0; at < count; ++at) {
      const double error =
          error_of(f, numbers.x.get(at), numbers.y.get(at), (*found)[i].get(at), dtype);
      if (error > worst) worst = error, where = at;
    }
    // Without FMA each product is rounded, too.
    const double more = target.mcpu == "x86-64-v2" ? 1.5 : 1;
    const double bound =
        dtype == DType::kFloat32 ? more * std::max(most_ulps, f.most_ulps) : most_ulps;
    EXPECT_LE(worst, bound) << f.op << "(" << numbers.x.get(where) << ", " << numbers.y.get(where)
                            << ") is " << (*found)[i].get(where) << ", not "
                            << f.exact(numbers.x.get(where), numbers.y.get(where)) << " for "
                            << target.mcpu;
    testing::Test::RecordProperty(f.op + std::to_string(i), std::to_string(worst));
  }
}

class ScalarFunctions : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string mcpu = GetParam();
    const bool runs = mcpu == "x86-64-v2" ||
                      (mcpu == "x86-64-v3" && __builtin_cpu_supports("avx2")) ||
                      __builtin_cpu_supports("avx512vl");
    if (!runs) GTEST_SKIP() << "this CPU does not run " << mcpu;
  }
  Target target() const { return *parse_target(std::string("llvm -mcpu=") + GetParam(), 2); }
};

TEST_P(ScalarFunctions, AreWithinFourUnitsOfTheLastPlaceOfFloat32) {
  const char* text = std::getenv("PRUNER_NUMBERS");
  const int64_t count = text != nullptr ? std::max(1024L, std::atol(text)) : 1 << 14;
  expect_right_functions(DType::kFloat32, count, target(), 4);
}

// All numbers of these types.
TEST(NarrowScalarFunctions, AreWithinTwoUnitsOfTheLastPlace) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "this CPU does not run x86-64-v3";
  const Target target = *parse_target("llvm -mcpu=x86-64-v3", 2);
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16})
    expect_right_functions(dtype, 1 << 16, target, 2);
}

INSTANTIATE_TEST_SUITE_P(Cpus,
                         ScalarFunctions,
                         testing::Values("x86-64-v4", "x86-64-v3", "x86-64-v2"));

}  // namespace
}  // namespace pruner
