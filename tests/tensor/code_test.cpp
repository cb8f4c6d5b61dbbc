// Floats of few bits: every code's value, and the code of every value, of what lies in the middle
// of two and of its neighbours, against a search of all codes.
#include "tensor/code.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tensor/interpreter.h"
#include "tensor/operator_dags.h"

namespace pruner {
namespace {

/// fn of each element of x.
Tensor mapped(const Tensor& x, const std::function<Expr(const Expr&)>& fn) {
  DagBuilder b;
  const StageId in = b.placeholder("x", x.shape(), x.dtype());
  const StageId out = add_elementwise(
      b, "y", std::array{in}, [&](std::span<const Expr> loads) { return fn(loads[0]); });
  const Tensor inputs[] = {x};
  return interpret(b.finish({out}), inputs)[0];
}

// ONNX's table of the types: exponent's bits, fraction's, bias.
struct Format {
  DType dtype;
  int exponent, fraction, bias;
};
constexpr Format kFormats[] = {{DType::kFloat8E4M3FN, 4, 3, 7},
                               {DType::kFloat8E4M3FNUZ, 4, 3, 8},
                               {DType::kFloat8E5M2, 5, 2, 15},
                               {DType::kFloat8E5M2FNUZ, 5, 2, 16},
                               {DType::kFloat4E2M1, 2, 1, 1}};

double value_of(const Format& t, int code) {
  const int sign = code >> (t.exponent + t.fraction),
            size = code & ((1 << (t.exponent + t.fraction)) - 1);
  const int top = (1 << t.exponent) - 1, exponent = size >> t.fraction;
  const int units = size & ((1 << t.fraction) - 1);
  if (t.dtype == DType::kFloat8E5M2 && exponent == top)
    return units != 0 ? std::nan("") : sign ? -HUGE_VAL : HUGE_VAL;
  if (t.dtype == DType::kFloat8E4M3FN && size == 0x7f) return std::nan("");
  const bool one_zero = t.dtype == DType::kFloat8E4M3FNUZ || t.dtype == DType::kFloat8E5M2FNUZ;
  if (one_zero && code == 0x80) return std::nan("");
  const double magnitude =
      exponent == 0 ? std::ldexp(units, 1 - t.bias - t.fraction)
                    : std::ldexp((1 << t.fraction) + units, exponent - t.bias - t.fraction);
  return sign ? -magnitude : magnitude;
}

int codes_of(const Format& t) { return 1 << (1 + t.exponent + t.fraction); }

// The nearest finite code, of two the even one; -1: out of range.
int nearest(const Format& t, double value) {
  double greatest = 0, last_step = 0;
  int best = -1;
  for (int code = 0; code < codes_of(t) / 2; ++code) {
    const double at = value_of(t, code), size = std::fabs(value);
    if (!std::isfinite(at)) continue;
    last_step = at - greatest;
    greatest = at;
    const double there = best < 0 ? HUGE_VAL : std::fabs(size - value_of(t, best));
    const double here = std::fabs(size - at);
    if (here < there || (here == there && code % 2 == 0)) best = code;
  }
  const double half = greatest + last_step / 2;  // larger numbers round to the next code
  const int last = best;
  const bool odd = last % 2 != 0;
  return std::fabs(value) > half || (std::fabs(value) == half && odd) ? -1 : best;
}

int expected_code(const Format& t, double value, bool saturates) {
  const int sign = codes_of(t) / 2;
  const bool one_zero = t.dtype == DType::kFloat8E4M3FNUZ || t.dtype == DType::kFloat8E5M2FNUZ;
  const bool four = t.dtype == DType::kFloat4E2M1, has_infinity = t.dtype == DType::kFloat8E5M2;
  const int negative = std::signbit(value) ? sign : 0;
  if (std::isnan(value))
    return one_zero ? 0x80 : four ? 8 : (has_infinity ? 0x7e : 0x7f) + negative;
  int code = std::isinf(value) ? -1 : nearest(t, value);
  if (code < 0 && !saturates && !four)
    return one_zero ? 0x80 : (has_infinity ? 0x7c : 0x7f) + negative;
  if (code < 0) {
    code = sign - 1;
    while (!std::isfinite(value_of(t, code))) --code;
  }
  return one_zero && code == 0 ? 0 : code + negative;
}

std::vector<double> edges(const Format& t, DType real) {
  const double inf = HUGE_VAL;
  std::vector<double> values = {
      inf, -inf, std::nan(""), -std::nan(""), 0, -0.0, 1e-45, 3e38, -3e38};
  std::vector<double> sizes;
  for (int code = 0; code < codes_of(t) / 2; ++code) {
    if (std::isfinite(value_of(t, code))) sizes.push_back(value_of(t, code));
  }
  sizes.push_back(2 * sizes.back() - sizes[sizes.size() - 2]);
  sizes.push_back(2 * sizes.back());
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    for (const double at : {sizes[i], (sizes[i] + sizes[i + 1]) / 2}) {
      for (const double towards : {-inf, at, inf}) {
        const double near =
            real == DType::kFloat64
                ? std::nextafter(at, towards)
                : double{std::nextafter(static_cast<float>(at), static_cast<float>(towards))};
        values.insert(values.end(), {near, -near});
      }
    }
  }
  return values;
}

TEST(Codes, HaveTheValuesOfOnnxsTable) {
  for (const Format& t : kFormats) {
    Tensor codes(t.dtype, {codes_of(t)});
    for (int i = 0; i < codes_of(t); ++i) codes.set_int(i, i);
    const Tensor values = mapped(codes, decode_code);
    ASSERT_EQ(values.dtype(), DType::kFloat32);
    for (int i = 0; i < codes_of(t); ++i) {
      const double want = value_of(t, i), have = values.get(i);
      EXPECT_TRUE(want == have || (std::isnan(want) && std::isnan(have)))
          << dtype_name(t.dtype) << " " << i << " is " << have << ", not " << want;
      if (!std::isnan(want)) {
        EXPECT_EQ(std::signbit(want), std::signbit(have));
      }
    }
  }
}

TEST(Codes, AreTheNearestOfAFloat) {
  for (const Format& t : kFormats) {
    for (const DType real : {DType::kFloat32, DType::kFloat64}) {
      for (const bool saturates : {true, false}) {
        const std::vector<double> values = edges(t, real);
        Tensor x(real, {static_cast<int64_t>(values.size())});
        for (size_t i = 0; i < values.size(); ++i) x.set(static_cast<int64_t>(i), values[i]);
        const Tensor codes = mapped(x, [&](const Expr& v) {
          return encode_code(t.dtype, v, saturates, CodeRounding::kUp);
        });
        for (int64_t i = 0; i < x.num_elements(); ++i) {
          EXPECT_EQ(codes.get_int(i), expected_code(t, x.get(i), saturates))
              << dtype_name(t.dtype) << " of " << x.get(i) << (saturates ? ", saturating" : "");
        }
      }
    }
  }
}

TEST(Codes, OfPowersAreRoundedAsAsked) {
  const double inf = HUGE_VAL, nan = std::nan("");
  const std::vector<double> values = {1,
                                      1.25,
                                      1.5,
                                      1.75,
                                      3,
                                      0,
                                      0x1p-127,
                                      0x1.8p-127,
                                      0x1.cp-127,
                                      0x1.4p-127,
                                      0x1p-128,
                                      0x1.8p127,
                                      0x1p127,
                                      inf,
                                      nan};
  const auto codes = [&](bool saturates, CodeRounding rounding) {
    Tensor x(DType::kFloat32, {static_cast<int64_t>(values.size())});
    for (size_t i = 0; i < values.size(); ++i) x.set(static_cast<int64_t>(i), values[i]);
    const Tensor y = mapped(
        x, [&](const Expr& v) { return encode_code(DType::kFloat8E8M0, v, saturates, rounding); });
    std::vector<int64_t> found;
    for (int64_t i = 0; i < y.num_elements(); ++i) found.push_back(y.get_int(i));
    return found;
  };
  using I = std::vector<int64_t>;
  EXPECT_EQ(codes(true, CodeRounding::kUp),
            (I{127, 128, 128, 128, 129, 0, 0, 1, 1, 1, 0, 254, 254, 254, 255}));
  EXPECT_EQ(codes(true, CodeRounding::kDown),
            (I{127, 127, 127, 127, 128, 0, 0, 0, 0, 0, 0, 254, 254, 254, 255}));
  EXPECT_EQ(codes(false, CodeRounding::kNearest),
            (I{127, 127, 128, 128, 129, 255, 0, 1, 1, 0, 255, 255, 254, 255, 255}));
  Tensor all(DType::kFloat8E8M0, {256});
  for (int i = 0; i < 256; ++i) all.set_int(i, i);
  const Tensor back = mapped(all, decode_code);
  for (int i = 0; i < 255; ++i) EXPECT_EQ(back.get(i), std::ldexp(1.0, i - 127));
  EXPECT_TRUE(std::isnan(back.get(255)));
}

TEST(BitCasts, KeepTheBits) {
  Tensor x(DType::kFloat32, {3});
  for (const auto& [i, v] : {std::pair{0, 1.0}, {1, -0.0}, {2, -2.5}}) x.set(i, v);
  const Tensor bits = mapped(x, [](const Expr& v) { return bit_cast(DType::kUInt32, v); });
  EXPECT_EQ(bits.get_int(0), 0x3f800000);
  EXPECT_EQ(bits.get_int(1), 0x80000000);
  EXPECT_EQ(bits.get_int(2), 0xc0200000);
  const Tensor back = mapped(bits, [](const Expr& v) { return bit_cast(DType::kFloat32, v); });
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(back.get(i), x.get(i));
  const Tensor whole = mapped(bits, [](const Expr& v) { return bit_cast(DType::kInt32, v); });
  EXPECT_EQ(whole.get_int(1), INT32_MIN);
}

TEST(WideUnsigned, IsComparedAndDividedWithoutASign) {
  Tensor x(DType::kUInt64, {3});
  x.set_int(0, -1);  // 2^64 - 1
  x.set_int(1, 3);
  x.set_int(2, INT64_MIN);  // 2^63
  const auto imm = [](int64_t v) { return int_imm(v, DType::kUInt64); };
  const Tensor third = mapped(x, [&](const Expr& v) { return floor_div(v, imm(3)); });
  EXPECT_EQ(third.get_int(0), 0x5555555555555555);
  EXPECT_EQ(third.get_int(2), 0x2aaaaaaaaaaaaaaa);
  const Tensor most = mapped(x, [&](const Expr& v) { return max(v, imm(100)); });
  EXPECT_EQ(most.get(0), 0x1p64);
  EXPECT_EQ(most.get_int(1), 100);
  EXPECT_EQ(most.get(2), 0x1p63);
  const Tensor real = mapped(x, [](const Expr& v) { return cast(DType::kFloat64, v); });
  EXPECT_EQ(real.get(2), 0x1p63);
  const Tensor again = mapped(real, [](const Expr& v) { return cast(DType::kUInt64, v); });
  EXPECT_EQ(again.get_int(2), INT64_MIN);
}

}  // namespace
}  // namespace pruner
