// The comparison of a computed output with the output that a test expects.
#pragma once

#include <string>

#include "tensor/tensor.h"

namespace pruner {

/// Describes the first wrong element of a computed output; empty if the output is right. `found`
/// points to the elements of an output that has the type and the shape of `expected`.
std::string wrong_element(const Tensor& expected, const void* found, double tolerance);

}  // namespace pruner
