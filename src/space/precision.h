// The precision that a schedule multiplies in: float32, or that of a unit for narrow numbers.
#pragma once

#include <string_view>

#include "space/space.h"

namespace pruner {

/// Returns the name of the unit that computes a sketch's largest stage, from kDotRates
/// ("int8_tile") or kTensorRates ("f16_f32"). Without a unit, returns the type in which the stage
/// is computed ("float32", "int32").
std::string_view precision_of(const Sketch& sketch);

}  // namespace pruner
