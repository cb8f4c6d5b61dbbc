// Transforms of a constant operand that forms of a task (space/rules) apply ahead of time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

namespace pruner {

enum class Transform : uint8_t {
  kNone,
  kWinograd2,       // winograd_weight() for tiles of 2 x 2 outputs
  kWinograd4,       // ... of 4 x 4
  kBfloat16Parts2,  // bfloat16_parts() of two
  kBfloat16Parts3,  // ... of three
  kLastFirst,       // [..., n] as [n, ...]
};

/// "winograd-2x2". find_transform() returns nothing if no transform has the name.
std::string_view transform_name(Transform transform);
std::optional<Transform> find_transform(std::string_view name);

/// The shape and the type of transformed().
std::vector<int64_t> transformed_shape(std::span<const int64_t> shape, Transform transform);
DType transformed_type(DType type, Transform transform);
Tensor transformed(const Tensor& tensor, Transform transform);

/// Bound of the error in float32 of what a form computes with the constant, over the largest sum of
/// |a| |b| of any output: measured, with a margin (tests/codegen/form_error_test.cpp).
double transform_error(Transform transform);

/// Returns the parts of each number, a sum of bfloat16, that a transform puts one after the other.
/// Part 0 is the number rounded, part 1 the rest, rounded, and so on. Other transforms have none.
std::span<const int> bfloat16_parts(Transform transform);

/// Returns [parts, ...] of [...]. Two parts leave out at most 2^-17 of a number and three parts
/// 2^-25, besides numbers below bfloat16's least.
Tensor bfloat16_parts(const Tensor& tensor, std::span<const int> parts);

}  // namespace pruner
