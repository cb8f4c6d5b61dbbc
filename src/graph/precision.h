// The types that contractions multiply, as --precision names them, and which targets can.
#pragma once

#include <string_view>

#include "target/target.h"
#include "tensor/dtype.h"

namespace pruner {

/// The type that a network's contractions multiply; kInt8: a quantized network's contractions.
enum class Precision : uint8_t { kFloat32, kTf32, kBFloat16, kFloat16, kInt8 };

/// How a target multiplies numbers of a type: with code that is slower than it has to be for it, or
/// with a unit that is faster than float32's.
enum class Support : uint8_t { kNone, kScalar, kUnit };

constexpr Support unit_if(bool there, Support otherwise = Support::kNone) {
  return there ? Support::kUnit : otherwise;
}

/// A value of --precision.
struct PrecisionRow {
  Precision precision;
  std::string_view text;
  DType type;  // type of the factors in memory
  Support (*support)(const Target&);
};
/// The rows stand in the order in which `auto` takes the first type that has a unit.
inline constexpr PrecisionRow kPrecisions[] = {
    {Precision::kBFloat16,
     "bf16",
     DType::kBFloat16,
     [](const Target& t) {
       return unit_if(t.is_gpu() ? t.gpu.tensor_rates.bf16 > 0 : t.dots.bfloat16_gains());
     }},
    {Precision::kFloat16,
     "f16",
     DType::kFloat16,
     [](const Target& t) {
       if (!t.is_gpu()) return unit_if(t.dots.float16_gains());
       // The arithmetic is float32's where there is no unit, but values take half the bytes.
       return unit_if(t.gpu.tensor_rates.f16_f32 > 0,
                      t.backend == Backend::kCuda ? Support::kScalar : Support::kNone);
     }},
    // Factors are float32 in memory and rounded where they are multiplied.
    {Precision::kTf32,
     "tf32",
     DType::kFloat32,
     [](const Target& t) { return unit_if(t.is_gpu() && t.gpu.tensor_rates.tf32 > 0); }},
    {Precision::kFloat32, "f32", DType::kFloat32, [](const Target&) { return Support::kUnit; }},
    // Only quantized networks multiply int8. On CPUs they run on integers at any --precision.
    {Precision::kInt8,
     "int8",
     DType::kInt8,
     [](const Target& t) { return unit_if(!t.is_gpu() || t.gpu.tensor_rates.s8 > 0); }},
};

constexpr const PrecisionRow& row_of(Precision precision) {
  const PrecisionRow* row = kPrecisions;
  while (row->precision != precision) ++row;
  return *row;
}

}  // namespace pruner
