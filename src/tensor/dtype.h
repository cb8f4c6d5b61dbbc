// Element types: in expressions, buffers, keys and FLOP counts.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace pruner {

enum class DType : uint8_t { kFloat32, kFloat16, kInt64, kInt32, kInt8, kBool };

/// Bytes of one element.
constexpr int64_t dtype_bytes(DType t) {
  switch (t) {
    case DType::kInt64: return 8;
    case DType::kFloat32:
    case DType::kInt32: return 4;
    case DType::kFloat16: return 2;
    case DType::kInt8:
    case DType::kBool: return 1;
  }
  return 0;
}

constexpr bool is_float(DType t) { return t == DType::kFloat32 || t == DType::kFloat16; }

/// "float32", "int64", "bool", ... as TVM writes them.
std::string_view dtype_name(DType t);
std::optional<DType> parse_dtype(std::string_view name);

}  // namespace pruner
