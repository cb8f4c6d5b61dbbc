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
  return std::numeric_limits<int64_t>::min() >> (64 - 8 * dtype_bytes(t));
}

int64_t greatest_int(DType t) {
  switch (row_of(t).kind) {
    case DTypeKind::kBool: return 1;
    case DTypeKind::kUInt: return (int64_t{1} << 8 * dtype_bytes(t)) - 1;
    default: return std::numeric_limits<int64_t>::max() >> (64 - 8 * dtype_bytes(t));
  }
}

double greatest_float(DType t) {
  return std::ldexp(2 - std::ldexp(1.0, -fraction_bits(t)), bias(t));
}

uint32_t encode_float(DType t, double wide) {
  const auto value = static_cast<float>(wide);
  if (t == DType::kFloat32) return std::bit_cast<uint32_t>(value);
  const int fraction = fraction_bits(t), width = exponent_bits(t);
  const uint32_t infinity = ((1u << width) - 1) << fraction;
  const uint32_t sign = std::signbit(value) ? 1u << (fraction + width) : 0;
  if (std::isnan(value)) return infinity | 1u << (fraction - 1);
  const double magnitude = std::fabs(double{value});
  // Half-way from the greatest value to the next power of two rounds up.
  if (magnitude >= std::ldexp(2 - std::ldexp(1.0, -fraction - 1), bias(t))) return sign | infinity;
  // Below the smallest normal the spacing is that of the smallest normals.
  const int least = 1 - bias(t);
  const int exponent = magnitude < std::ldexp(1.0, least) ? least : std::ilogb(magnitude);
  const auto units =
      static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, fraction - exponent)));
  // A carry out of the fraction lands in the exponent, which is what rounding up means.
  return sign + units + (static_cast<uint32_t>(exponent - least) << fraction);
}

double decode_float(DType t, uint32_t bits) {
  if (t == DType::kFloat32) return std::bit_cast<float>(bits);
  const int fraction = fraction_bits(t), width = exponent_bits(t);
  const auto exponent = static_cast<int>(bits >> fraction & ((1u << width) - 1));
  const auto units = static_cast<double>(bits & ((1u << fraction) - 1));
  const double sign = bits >> (fraction + width) & 1 ? -1 : 1;
  const int least = 1 - bias(t);
  if (exponent == (1 << width) - 1) return units != 0 ? std::nan("") : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(units, least - fraction);
  return sign * std::ldexp(std::ldexp(1.0, fraction) + units, exponent - bias(t) - fraction);
}

}  // namespace pruner
