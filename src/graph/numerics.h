// The results that a quantized network gives if ONNX and ONNX Runtime differ (--numerics).
#pragma once

#include <cstdint>
#include <string_view>

namespace pruner {

/// The definition of a quantized network's results. kOnnx: each operator between Dequantize and
/// Quantize computes in float32 and rounds as ONNX defines it. kOnnxRuntime: these operators become
/// those that ONNX Runtime's optimizer makes, which round in another order.
enum class Numerics : uint8_t { kOnnx, kOnnxRuntime };

/// A value of --numerics.
struct NumericsRow {
  Numerics numerics;
  std::string_view text;
};
inline constexpr NumericsRow kNumerics[] = {
    {Numerics::kOnnx, "onnx"},
    {Numerics::kOnnxRuntime, "ort"},
};

constexpr std::string_view numerics_name(Numerics numerics) {
  const NumericsRow* row = kNumerics;
  while (row->numerics != numerics) ++row;
  return row->text;
}

}  // namespace pruner
