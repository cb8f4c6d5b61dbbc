// Element types: in expressions, buffers, keys and FLOP counts. Each is a row of PRUNER_DTYPES
// (include/pruner/dtype.h); what is asked of a type here is answered from its row.
//
// Values are computed in float32 where a type is a float that is narrower, which memory alone holds
// as it is; what is rounded to such a type is rounded to float32 before, but what is float64 is
// cast to it at once. Integers wrap around to their type; floats round to nearest, halves to even.
// An int64 stands for a value of any integer type: for one of uint64 by its bits.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "pruner/dtype.h"

namespace pruner {

#define PRUNER_DTYPE_ROW(abi, cpp, text, kind, bits, fraction, onnx, numpy) cpp,
enum class DType : uint8_t { PRUNER_DTYPES(PRUNER_DTYPE_ROW) };
#undef PRUNER_DTYPE_ROW

enum class DTypeKind : uint8_t { kFloat, kInt, kUInt, kBool, kCode };

struct DTypeRow {
  DType dtype;
  std::string_view name;  // TVM's name, in keys and records
  DTypeKind kind;
  int bits;                // bits of a value
  int fraction_bits;       // bits of a float's fraction
  int onnx;                // number in TensorProto.DataType
  std::string_view numpy;  // code of a little-endian array
};

#define PRUNER_DTYPE_ROW(abi, cpp, text, kind, bits, fraction, onnx, numpy) \
  {DType::cpp, text, DTypeKind::kind, bits, fraction, onnx, numpy},
inline constexpr DTypeRow kDTypes[] = {PRUNER_DTYPES(PRUNER_DTYPE_ROW)};
#undef PRUNER_DTYPE_ROW

constexpr const DTypeRow& row_of(DType t) { return kDTypes[static_cast<size_t>(t)]; }

/// Bytes of one element.
constexpr int64_t dtype_bytes(DType t) { return (row_of(t).bits + 7) / 8; }
constexpr bool is_float(DType t) { return row_of(t).kind == DTypeKind::kFloat; }
/// A float that is computed in float32.
constexpr bool is_narrow_float(DType t) { return is_float(t) && dtype_bytes(t) < 4; }
/// A narrow float that is the upper bits of a float32: its exponent has as many bits.
constexpr bool is_upper_float32(DType t) {
  return is_narrow_float(t) &&
         8 * dtype_bytes(t) - row_of(t).fraction_bits == 32 - row_of(DType::kFloat32).fraction_bits;
}
/// An integer, with a sign or without one.
constexpr bool is_integer(DType t) {
  return row_of(t).kind == DTypeKind::kInt || row_of(t).kind == DTypeKind::kUInt;
}
constexpr bool is_signed_int(DType t) { return row_of(t).kind == DTypeKind::kInt; }
/// An integer without a sign of 64 bits: its values are compared and divided as uint64_t.
constexpr bool is_wide_unsigned(DType t) {
  return row_of(t).kind == DTypeKind::kUInt && row_of(t).bits == 64;
}
/// A float of which we know the bits only, or an integer narrower than a byte: moved and cast, not
/// computed with.
constexpr bool is_code(DType t) { return row_of(t).kind == DTypeKind::kCode; }
constexpr bool is_only_moved(DType t) { return row_of(t).bits < 8 || is_code(t); }

/// "float32", "int64", "bool", ... as TVM writes them.
constexpr std::string_view dtype_name(DType t) { return row_of(t).name; }
std::optional<DType> parse_dtype(std::string_view name);

/// The least and the greatest of an integer type or bool; of uint64, the bits.
int64_t least_int(DType t);
int64_t greatest_int(DType t);
/// The greatest finite value of a float.
double greatest_float(DType t);

/// Returns the value that a variable of the type holds when `value` is stored in the variable.
inline double round_to(DType t, double value);
constexpr int64_t wrap_to(DType t, int64_t value);

/// The bits of a float's element, rounded once, and what they stand for.
uint64_t encode_float(DType t, double value);
double decode_float(DType t, uint64_t bits);

/// A float32 with 10 bits of fraction, to nearest, halves away from zero (PTX: cvt.rna.tf32.f32).
double round_to_tf32(double value);

/// A value of an integer type as a double, and back: truncated; what the type does not hold
/// saturates if it is of 64 bits, and else wraps around. NaN is 0.
double int_to_double(DType from, int64_t value);
int64_t double_to_int(DType to, double value);
/// A float, or a value of an integer type, of type `from` cast to the float type `to`.
double cast_float(DType from, DType to, double value);
double cast_int(DType from, DType to, int64_t value);

inline double round_to(DType t, double value) {
  if (t == DType::kFloat32) return static_cast<float>(value);
  if (!is_narrow_float(t)) return value;
  return decode_float(t, encode_float(t, double{static_cast<float>(value)}));
}

constexpr int64_t wrap_to(DType t, int64_t value) {
  const int unused = 64 - row_of(t).bits;
  const uint64_t high = static_cast<uint64_t>(value) << unused;
  switch (row_of(t).kind) {
    case DTypeKind::kBool: return value != 0;
    case DTypeKind::kCode:
    case DTypeKind::kUInt: return static_cast<int64_t>(high >> unused);
    default: return static_cast<int64_t>(high) >> unused;
  }
}

}  // namespace pruner
