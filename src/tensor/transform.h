// What forms of a task (space/rules) make of a constant operand ahead of time.
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

/// "winograd-2x2"; the other way round nothing where no transform is called so.
std::string_view transform_name(Transform transform);
std::optional<Transform> find_transform(std::string_view name);

/// The shape and the type of transformed().
std::vector<int64_t> transformed_shape(std::span<const int64_t> shape, Transform transform);
DType transformed_type(DType type, Transform transform);
Tensor transformed(const Tensor& tensor, Transform transform);

/// Bound of the error in float32 of what a form computes with the constant, over the largest sum of
/// |a| |b| of any output: measured, with a margin (tests/codegen/form_error_test.cpp).
double transform_error(Transform transform);

/// The parts of each number, a sum of bfloat16, that a transform puts one after the other: 0 is the
/// number rounded, 1 what that left out, rounded, and so on. Empty of the other transforms.
std::span<const int> bfloat16_parts(Transform transform);

/// [parts, ...] of [...]. Two parts leave out 2^-17 of a number at most and three 2^-25, beside
/// what is below bfloat16's least.
Tensor bfloat16_parts(const Tensor& tensor, std::span<const int> parts);

}  // namespace pruner
