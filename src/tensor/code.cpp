#include "tensor/code.h"

#include <cmath>

#include "support/check.h"

namespace pruner {
namespace {

// A type with a sign. Codes without the sign ascend with their magnitude: the exponent's bits, then
// the fraction's.
struct Format {
  DType dtype;
  int bias;          // the exponent of 1, as it is stored
  int64_t greatest;  // the code of the greatest finite value
  int64_t overflow;  // the code of a value out of range: infinity, NaN or again the greatest
  int64_t nan;       // in types with one zero, the code that would be -0
  bool one_zero;     // no -0: its code is NaN
};

constexpr Format kFormats[] = {
    {DType::kFloat8E4M3FN, 7, 0x7e, 0x7f, 0x7f, false},
    {DType::kFloat8E4M3FNUZ, 8, 0x7f, 0x80, 0x80, true},
    {DType::kFloat8E5M2, 15, 0x7b, 0x7c, 0x7e, false},
    {DType::kFloat8E5M2FNUZ, 16, 0x7f, 0x80, 0x80, true},
    {DType::kFloat4E2M1, 1, 0x7, 0x7, 0x8, false},  // the type has no NaN: -0, as in ml_dtypes
};

const Format& format_of(DType dtype) {
  for (const Format& row : kFormats)
    if (row.dtype == dtype) return row;
  CHECK(false) << dtype_name(dtype) << " is no code with a sign";
  return kFormats[0];
}

// A type to compute in, and the integers that hold its bits.
struct Carrier {
  DType real, bits;

  int fraction() const { return row_of(real).fraction_bits; }
  int bias() const { return (1 << (row_of(real).bits - 2 - fraction())) - 1; }
  Expr whole(int64_t value) const { return int_imm(value, bits); }
  Expr power_of_two(int exponent) const {
    return whole(static_cast<int64_t>(uint64_t{1} << exponent));
  }
  Expr sign_bit() const { return power_of_two(row_of(real).bits - 1); }
};
constexpr Carrier kSingle = {DType::kFloat32, DType::kUInt32};
constexpr Carrier kDouble = {DType::kFloat64, DType::kUInt64};

Expr equal(const Expr& a, const Expr& b) { return binary(BinaryOp::kEq, a, b); }
Expr above(const Expr& a, const Expr& b) { return binary(BinaryOp::kGt, a, b); }

// 2^(code - 127): the least is subnormal as a float32.
Expr decode_power(const Expr& code) {
  const Carrier c = kSingle;
  const Expr exponent = code * c.power_of_two(c.fraction());
  const Expr least = c.power_of_two(c.fraction() - 1);
  const Expr nan = c.whole(0x7fc00000);
  const Expr bits = select(equal(code, c.whole(0)), least, exponent);
  return bit_cast(c.real, select(equal(code, c.whole(0xff)), nan, bits));
}

// The exponent's bits, after what rounding adds. Subnormal numbers begin at 2^-127, code 0, where
// the fraction has its highest bit alone.
Expr encode_power(const Expr& value, bool saturates, CodeRounding rounding) {
  const Carrier c = kSingle;
  const Expr zero = c.whole(0), one = c.whole(1), nan = c.whole(0xff);
  const Expr size = floor_mod(bit_cast(c.bits, value), c.sign_bit());
  const Expr exponent = floor_div(size, c.power_of_two(c.fraction()));
  const Expr fraction = floor_mod(size, c.power_of_two(c.fraction()));
  const Expr subnormal = equal(exponent, zero), half = c.power_of_two(c.fraction() - 1);
  // Beyond the power of two below: of the distance to the next one.
  const Expr beyond = select(subnormal, (max(fraction, half) - half) * c.whole(2), fraction);
  const Expr least = rounding == CodeRounding::kUp ? one : half;
  const Expr up = rounding == CodeRounding::kDown ? zero : cast(c.bits, beyond >= least);
  const Expr in_range = select(subnormal && fraction < half, saturates ? zero : nan, exponent + up);
  const Expr infinity = c.whole(0x7f800000);
  const Expr bounded = saturates ? min(in_range, c.whole(0xfe)) : in_range;
  return select(above(size, infinity), nan, bounded);
}

}  // namespace

Expr decode_code(const Expr& code) {
  const Carrier c = kSingle;
  const Expr bits = cast(c.bits, code);
  if (code->dtype == DType::kFloat8E8M0) return decode_power(bits);
  const Format& format = format_of(code->dtype);
  const int fraction = row_of(format.dtype).fraction_bits;
  const Expr sign_bit = c.power_of_two(row_of(format.dtype).bits - 1);
  const Expr size = floor_mod(bits, sign_bit);
  // A normal number has the same bits further up, but for the bias.
  const Expr rebased = size * c.power_of_two(c.fraction() - fraction) +
                       c.whole(int64_t{c.bias() - format.bias} << c.fraction());
  const Expr unit = float_imm(std::ldexp(1.0, 1 - format.bias - fraction), c.real);
  Expr value =
      select(size < c.power_of_two(fraction), cast(c.real, size) * unit, bit_cast(c.real, rebased));
  const auto constant = [&](int64_t of) { return bit_cast(c.real, c.whole(of)); };
  const bool has_nan = format.overflow != format.greatest;
  if (has_nan && !format.one_zero) {
    const bool has_infinity = format.overflow != format.nan;
    const Expr special = has_infinity ? select(equal(size, c.whole(format.overflow)),
                                               constant(0x7f800000),
                                               constant(0x7fc00000))
                                      : constant(0x7fc00000);
    value = select(above(size, c.whole(format.greatest)), special, value);
  }
  const Expr sign = select(bits >= sign_bit, float_imm(-1, c.real), float_imm(1, c.real));
  value = value * sign;
  return format.one_zero ? select(equal(bits, c.whole(format.nan)), constant(0x7fc00000), value)
                         : value;
}

Expr encode_code(DType to, const Expr& value, bool saturates, CodeRounding rounding) {
  if (to == DType::kFloat8E8M0)
    return cast(to, encode_power(cast(DType::kFloat32, value), saturates, rounding));
  const Format& format = format_of(to);
  const Carrier c = value->dtype == DType::kFloat64 ? kDouble : kSingle;
  const int fraction = row_of(to).fraction_bits;
  const Expr bits = bit_cast(c.bits, value);
  const Expr size = floor_mod(bits, c.sign_bit());
  const Expr negative = bits >= c.sign_bit();
  // Units of the last place are those of the least normal exponent below it, and whole numbers once
  // the value is multiplied by what makes them so: 2^(fraction - exponent).
  const Expr least = c.whole(c.bias() + 1 - format.bias);
  const Expr exponent = max(floor_div(size, c.power_of_two(c.fraction())), least);
  const Expr scale = (c.whole(2 * c.bias() + fraction) - exponent) * c.power_of_two(c.fraction());
  const Expr scaled = bit_cast(c.real, size) * bit_cast(c.real, scale);
  // The bound, beyond all finite ones, is for infinity and NaN, which no integer holds.
  const Expr bound = float_imm(std::ldexp(1.0, fraction + 2), c.real);
  const Expr units = cast(c.bits, min(bound, call(Intrinsic::kRound, {scaled})));
  // A carry out of the fraction lands in the exponent.
  const Expr rounded = units + (exponent - least) * c.power_of_two(fraction);
  const Expr over = c.whole(saturates ? format.greatest : format.overflow);
  Expr code = select(above(rounded, c.whole(format.greatest)), over, rounded);
  const Expr infinity = c.whole(((int64_t{2} * c.bias() + 1) << c.fraction()));
  const Expr is_nan = above(size, infinity);
  const Expr nan = c.whole(format.nan), zero = c.whole(0);
  const bool has_nan = format.overflow != format.greatest;
  if (!format.one_zero && has_nan) code = select(is_nan, nan, code);
  const Expr sign = select(negative, c.power_of_two(row_of(to).bits - 1), zero);
  const Expr has_sign = format.one_zero ? above(code, zero) && code < nan : Expr();
  Expr result = format.one_zero ? code + select(has_sign, sign, zero) : code + sign;
  if (format.one_zero || !has_nan) result = select(is_nan, nan, result);
  return cast(to, result);
}

}  // namespace pruner
