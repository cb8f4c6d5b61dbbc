#include "tensor/transform.h"

#include <algorithm>

#include "support/check.h"
#include "tensor/pack.h"
#include "tensor/winograd.h"

namespace pruner {
namespace {

struct Row {
  std::string_view name;
  int tile;  // tile of a Winograd transform; 0: another transform
  double error;
  std::vector<int> parts = {};  // numbers of the bfloat16 parts
};

const Row& row_of(Transform transform) {
  static const Row rows[] = {{"none", 0, 0},
                             {"winograd-2x2", 2, winograd(2).error},
                             {"winograd-4x4", 4, winograd(4).error},
                             {"bf16-2-parts", 0, 3e-6, {0, 1}},
                             {"bf16-3-parts", 0, 1.5e-6, {0, 0, 1, 2}},
                             {"last-first", 0, 0}};
  return rows[static_cast<size_t>(transform)];
}

Tensor last_first(const Tensor& tensor) {
  PackSpec spec;
  spec.order = {static_cast<int>(tensor.shape().size()) - 1};
  for (int dim = 0; dim < spec.order[0]; ++dim) spec.order.push_back(dim);
  return pack(tensor, spec);
}

}  // namespace

std::string_view transform_name(Transform transform) { return row_of(transform).name; }

std::optional<Transform> find_transform(std::string_view name) {
  using enum Transform;
  for (const Transform transform :
       {kWinograd2, kWinograd4, kBfloat16Parts2, kBfloat16Parts3, kLastFirst}) {
    if (row_of(transform).name == name) return transform;
  }
  return std::nullopt;
}

std::vector<int64_t> transformed_shape(std::span<const int64_t> shape, Transform transform) {
  if (const int tile = row_of(transform).tile; tile != 0) return winograd_shape(shape, tile);
  std::vector<int64_t> result(shape.begin(), shape.end());
  if (transform == Transform::kLastFirst)
    std::rotate(result.begin(), result.end() - 1, result.end());
  if (const auto parts = std::ssize(bfloat16_parts(transform)); parts != 0)
    result.insert(result.begin(), parts);
  return result;
}

DType transformed_type(DType type, Transform transform) {
  if (transform == Transform::kNone || transform == Transform::kLastFirst) return type;
  return bfloat16_parts(transform).empty() ? DType::kFloat32 : DType::kBFloat16;
}

Tensor transformed(const Tensor& tensor, Transform transform) {
  if (const int tile = row_of(transform).tile; tile != 0) return winograd_weight(tensor, tile);
  if (transform == Transform::kLastFirst) return last_first(tensor);
  const std::span<const int> parts = bfloat16_parts(transform);
  return parts.empty() ? tensor : bfloat16_parts(tensor, parts);
}

double transform_error(Transform transform) { return row_of(transform).error; }

std::span<const int> bfloat16_parts(Transform transform) { return row_of(transform).parts; }

Tensor bfloat16_parts(const Tensor& tensor, std::span<const int> parts) {
  CHECK(tensor.dtype() == DType::kFloat32) << "parts of float32 only";
  std::vector<int64_t> shape = {std::ssize(parts)};
  shape.insert(shape.end(), tensor.shape().begin(), tensor.shape().end());
  Tensor result(DType::kBFloat16, shape);
  const std::span<const float> numbers = tensor.values<float>();
  const std::span<uint16_t> bits = result.values<uint16_t>();
  std::vector<uint16_t> of_number(static_cast<size_t>(std::ranges::max(parts)) + 1);
  for (size_t i = 0; i < numbers.size(); ++i) {
    double left = numbers[i];
    for (uint16_t& part : of_number) {
      part = static_cast<uint16_t>(encode_float(DType::kBFloat16, left));
      left -= decode_float(DType::kBFloat16, part);
    }
    for (size_t p = 0; p < parts.size(); ++p)
      bits[p * numbers.size() + i] = of_number[static_cast<size_t>(parts[p])];
  }
  return result;
}

}  // namespace pruner
