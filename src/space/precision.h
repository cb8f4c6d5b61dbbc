// What a schedule multiplies with: float32, or a unit for narrow numbers.
#pragma once

#include <string_view>

#include "space/space.h"

namespace pruner {

/// Of a sketch's largest stage the unit's name in kDotRates ("int8_tile") or kTensorRates
/// ("f16_f32"), or the type that it computes in ("float32", "int32").
std::string_view precision_of(const Sketch& sketch);

}  // namespace pruner
