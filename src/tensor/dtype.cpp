#include "tensor/dtype.h"

#include <utility>

namespace pruner {

static constexpr std::pair<DType, std::string_view> kNames[] = {
    {DType::kFloat32, "float32"},
    {DType::kFloat16, "float16"},
    {DType::kInt64, "int64"},
    {DType::kInt32, "int32"},
    {DType::kInt8, "int8"},
    {DType::kBool, "bool"},
};

std::string_view dtype_name(DType t) {
  for (const auto& [dtype, name] : kNames) {
    if (dtype == t) return name;
  }
  return "?";
}

std::optional<DType> parse_dtype(std::string_view name) {
  for (const auto& [dtype, text] : kNames) {
    if (text == name) return dtype;
  }
  return std::nullopt;
}

}  // namespace pruner
