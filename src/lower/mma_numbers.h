// The numbers that instructions on matrices (space/mma.h) compute with, in the interpreter's types.
#pragma once

#include <bit>
#include <cstdint>

#include "tensor/dtype.h"
#include "tensor/scalar_ops.h"

namespace pruner {

/// Return what an instruction makes of an element of a matrix: float32 becomes tf32.
inline double factor_of(DType dtype, double x) {
  return dtype == DType::kFloat32 ? round_to_tf32(x) : x;
}
inline int64_t factor_of(DType, int64_t x) { return x; }

/// Return what a group's instruction makes of it: float32 loses the bits that tf32 has not.
inline double group_factor_of(DType dtype, double x) {
  if (dtype != DType::kFloat32) return x;
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(x));
  return static_cast<double>(std::bit_cast<float>(bits & 0xffffe000u));
}
inline int64_t group_factor_of(DType, int64_t x) { return x; }

/// Return a sum as its type holds it.
inline double sum_of(DType dtype, double sum) { return round_to(dtype, sum); }
inline int64_t sum_of(DType dtype, int64_t sum) { return wrap_to(dtype, sum); }

}  // namespace pruner
