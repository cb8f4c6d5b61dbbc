// Element types: in expressions, buffers, keys and FLOP counts. Each is a row of PRUNER_DTYPES
// (include/pruner/dtype.h); what is asked of a type here is answered from its row.
//
// Values are computed in float32 where a type is a float that is narrower, which memory alone holds
// as it is; what is rounded to such a type is rounded to float32 before. Integers wrap around to
// their type; floats round to nearest, halves to even.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "pruner/dtype.h"

namespace pruner {

#define PRUNER_DTYPE_ROW(abi, cpp, text, kind, bytes, fraction, onnx, numpy) cpp,
enum class DType : uint8_t { PRUNER_DTYPES(PRUNER_DTYPE_ROW) };
#undef PRUNER_DTYPE_ROW

enum class DTypeKind : uint8_t { kFloat, kInt, kUInt, kBool };

struct DTypeRow {
  DType dtype;
  std::string_view name;  // as TVM writes it, in keys and records
  DTypeKind kind;
  int64_t bytes;           // of an element
  int fraction_bits;       // of a float
  int onnx;                // number in TensorProto.DataType
  std::string_view numpy;  // code of a little-endian array
};

#define PRUNER_DTYPE_ROW(abi, cpp, text, kind, bytes, fraction, onnx, numpy) \
  {DType::cpp, text, DTypeKind::kind, bytes, fraction, onnx, numpy},
inline constexpr DTypeRow kDTypes[] = {PRUNER_DTYPES(PRUNER_DTYPE_ROW)};
#undef PRUNER_DTYPE_ROW

constexpr const DTypeRow& row_of(DType t) { return kDTypes[static_cast<size_t>(t)]; }

/// Bytes of one element.
constexpr int64_t dtype_bytes(DType t) { return row_of(t).bytes; }
constexpr bool is_float(DType t) { return row_of(t).kind == DTypeKind::kFloat; }
/// A float that is computed in float32.
constexpr bool is_narrow_float(DType t) { return is_float(t) && dtype_bytes(t) < 4; }
/// A narrow float that is the upper bits of a float32: its exponent has as many bits.
constexpr bool is_upper_float32(DType t) {
  return is_narrow_float(t) &&
         8 * dtype_bytes(t) - row_of(t).fraction_bits == 32 - row_of(DType::kFloat32).fraction_bits;
}
/// An integer that may be negative.
constexpr bool is_signed_int(DType t) { return row_of(t).kind == DTypeKind::kInt; }

/// "float32", "int64", "bool", ... as TVM writes them.
constexpr std::string_view dtype_name(DType t) { return row_of(t).name; }
std::optional<DType> parse_dtype(std::string_view name);

/// The least and the greatest of an integer type or bool.
int64_t least_int(DType t);
int64_t greatest_int(DType t);
/// The greatest finite value of a float.
double greatest_float(DType t);

/// What a variable of the type holds of a value.
inline double round_to(DType t, double value);
constexpr int64_t wrap_to(DType t, int64_t value);

/// The bits of a float's element (of float32 and narrower), and what they stand for.
uint32_t encode_float(DType t, double value);
double decode_float(DType t, uint32_t bits);

inline double round_to(DType t, double value) {
  if (t == DType::kFloat32) return static_cast<float>(value);
  return is_narrow_float(t) ? decode_float(t, encode_float(t, value)) : value;
}

constexpr int64_t wrap_to(DType t, int64_t value) {
  const auto unused = static_cast<int>(64 - 8 * dtype_bytes(t));
  const uint64_t high = static_cast<uint64_t>(value) << unused;
  switch (row_of(t).kind) {
    case DTypeKind::kBool: return value != 0;
    case DTypeKind::kUInt: return static_cast<int64_t>(high >> unused);
    default: return static_cast<int64_t>(high) >> unused;
  }
}

}  // namespace pruner
