// IEEE half precision as bits: what float16 tensors hold.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace pruner {

inline double half_to_double(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double fraction = bits & 1023;
  const double sign = bits >> 15 ? -1 : 1;
  if (exponent == 31) return fraction != 0 ? std::nan("") : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

/// Rounds to nearest, halves to even.
inline uint16_t double_to_half(double value) {
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const double magnitude = std::fabs(value);
  if (std::isnan(value)) return 0x7e00;
  if (magnitude >= 65520) return sign | 0x7c00;  // the half-way point to 2^16 rounds up
  // Below 2^-14 the spacing is that of the smallest normals.
  const int exponent = magnitude < 0x1p-14 ? -14 : std::ilogb(magnitude);
  const auto units = static_cast<uint16_t>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
  // A carry out of the fraction lands in the exponent, which is what rounding up means.
  return static_cast<uint16_t>(sign + units + (exponent + 14) * 1024);
}

}  // namespace pruner
