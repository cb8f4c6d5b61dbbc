#include "tensor/dtype.h"

#include <bit>
#include <cmath>
#include <limits>

namespace pruner {
namespace {

int fraction_bits(DType t) { return row_of(t).fraction_bits; }
int exponent_bits(DType t) { return 8 * static_cast<int>(dtype_bytes(t)) - 1 - fraction_bits(t); }
/// The exponent of 1, as it is stored; also the greatest exponent of a finite value.
int bias(DType t) { return (1 << (exponent_bits(t) - 1)) - 1; }

}  // namespace

std::optional<DType> parse_dtype(std::string_view name) {
  for (const DTypeRow& row : kDTypes)
    if (row.name == name) return row.dtype;
  return std::nullopt;
}

int64_t least_int(DType t) {
  if (!is_signed_int(t)) return 0;
  return std::numeric_limits<int64_t>::min() >> (64 - row_of(t).bits);
}

int64_t greatest_int(DType t) {
  if (row_of(t).kind == DTypeKind::kBool) return 1;
  const int bits = row_of(t).bits - (is_signed_int(t) ? 1 : 0);
  return static_cast<int64_t>(~uint64_t{0} >> (64 - bits));
}

double greatest_float(DType t) {
  return std::ldexp(2 - std::ldexp(1.0, -fraction_bits(t)), bias(t));
}

uint64_t encode_float(DType t, double value) {
  if (t == DType::kFloat64) return std::bit_cast<uint64_t>(value);
  if (t == DType::kFloat32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  const int fraction = fraction_bits(t), width = exponent_bits(t);
  const uint64_t infinity = ((uint64_t{1} << width) - 1) << fraction;
  const uint64_t sign = std::signbit(value) ? uint64_t{1} << (fraction + width) : 0;
  if (std::isnan(value)) return sign | infinity | uint64_t{1} << (fraction - 1);
  const double magnitude = std::fabs(value);
  // Half-way from the greatest value to the next power of two rounds up.
  if (magnitude >= std::ldexp(2 - std::ldexp(1.0, -fraction - 1), bias(t))) return sign | infinity;
  // Below the smallest normal the spacing is that of the smallest normals.
  const int least = 1 - bias(t);
  const int exponent = magnitude < std::ldexp(1.0, least) ? least : std::ilogb(magnitude);
  const auto units =
      static_cast<uint64_t>(std::nearbyint(std::ldexp(magnitude, fraction - exponent)));
  // A carry out of the fraction lands in the exponent, which is what rounding up means.
  return sign + units + (static_cast<uint64_t>(exponent - least) << fraction);
}

double decode_float(DType t, uint64_t bits) {
  if (t == DType::kFloat64) return std::bit_cast<double>(bits);
  if (t == DType::kFloat32) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  const int fraction = fraction_bits(t), width = exponent_bits(t);
  const auto exponent = static_cast<int>(bits >> fraction & ((1u << width) - 1));
  const auto units = static_cast<double>(bits & ((1u << fraction) - 1));
  const double sign = bits >> (fraction + width) & 1 ? -1 : 1;
  const int least = 1 - bias(t);
  if (exponent == (1 << width) - 1) return units != 0 ? std::nan("") : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(units, least - fraction);
  return sign * std::ldexp(std::ldexp(1.0, fraction) + units, exponent - bias(t) - fraction);
}

double round_to_tf32(double value) {
  constexpr uint64_t kDropped = 13;  // bits dropped from float32's 23 bits of fraction
  const uint64_t bits = encode_float(DType::kFloat32, value);
  const bool finite = value - value == 0;
  const uint64_t half = finite ? uint64_t{1} << (kDropped - 1) : 0;
  return decode_float(DType::kFloat32, (bits + half) >> kDropped << kDropped);
}

double int_to_double(DType from, int64_t value) {
  return is_wide_unsigned(from) ? static_cast<double>(static_cast<uint64_t>(value))
                                : static_cast<double>(value);
}

int64_t double_to_int(DType to, double value) {
  if (row_of(to).kind == DTypeKind::kBool) return value != 0;
  if (std::isnan(value)) return 0;
  const bool wide = is_wide_unsigned(to);
  const double end = wide ? 0x1p64 : 0x1p63;
  if (value >= end) return wrap_to(to, wide ? -1 : std::numeric_limits<int64_t>::max());
  if (value >= 0x1p63) return static_cast<int64_t>(static_cast<uint64_t>(value));
  if (wide && value < 0) return 0;
  if (value < -0x1p63) return wrap_to(to, std::numeric_limits<int64_t>::min());
  return wrap_to(to, static_cast<int64_t>(value));
}

double cast_float(DType from, DType to, double value) {
  if (from != DType::kFloat64) return round_to(to, static_cast<float>(value));
  return to == from ? value : decode_float(to, encode_float(to, value));
}

double cast_int(DType from, DType to, int64_t value) {
  if (to == DType::kFloat64) return int_to_double(from, value);
  const float rounded = is_wide_unsigned(from) ? static_cast<float>(static_cast<uint64_t>(value))
                                               : static_cast<float>(value);
  return round_to(to, double{rounded});
}

}  // namespace pruner
