#include "tensor/transform.h"

#include <algorithm>

#include "support/check.h"
#include "tensor/pack.h"
#include "tensor/winograd.h"

namespace pruner {
namespace {

struct Row {
  std::string_view name;
  int tile;  // of Winograd's; 0: it is none
  double error;
};

constexpr double kBfloat16PartsError = 3e-6;

const Row& row_of(Transform transform) {
  static const Row rows[] = {{"none", 0, 0},
                             {"winograd-2x2", 2, winograd(2).error},
                             {"winograd-4x4", 4, winograd(4).error},
                             {"bf16-parts", 0, kBfloat16PartsError}};
  return rows[static_cast<size_t>(transform)];
}

}  // namespace

std::string_view transform_name(Transform transform) { return row_of(transform).name; }

std::optional<Transform> find_transform(std::string_view name) {
  using enum Transform;
  for (const Transform transform : {kWinograd2, kWinograd4, kBfloat16Parts}) {
    if (row_of(transform).name == name) return transform;
  }
  return std::nullopt;
}

std::vector<int64_t> transformed_shape(std::span<const int64_t> shape, Transform transform) {
  if (const int tile = row_of(transform).tile; tile != 0) return winograd_shape(shape, tile);
  std::vector<int64_t> result(shape.begin(), shape.end());
  if (transform == Transform::kBfloat16Parts) result.insert(result.begin(), kBfloat16Parts);
  return result;
}

DType transformed_type(DType type, Transform transform) {
  if (transform == Transform::kNone) return type;
  return transform == Transform::kBfloat16Parts ? DType::kBFloat16 : DType::kFloat32;
}

Tensor transformed(const Tensor& tensor, Transform transform) {
  if (const int tile = row_of(transform).tile; tile != 0) return winograd_weight(tensor, tile);
  return transform == Transform::kBfloat16Parts ? bfloat16_parts(tensor) : tensor;
}

double transform_error(Transform transform) { return row_of(transform).error; }

Tensor bfloat16_parts(const Tensor& tensor) {
  CHECK(tensor.dtype() == DType::kFloat32) << "parts of float32 only";
  const std::vector<int64_t> shape = transformed_shape(tensor.shape(), Transform::kBfloat16Parts);
  Tensor parts(DType::kBFloat16, shape);
  const std::span<const float> numbers = tensor.values<float>();
  const std::span<uint16_t> bits = parts.values<uint16_t>();
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto encode = [](double x) {
      return static_cast<uint16_t>(encode_float(DType::kBFloat16, x));
    };
    bits[i] = encode(numbers[i]);
    bits[numbers.size() + i] = encode(numbers[i] - decode_float(DType::kBFloat16, bits[i]));
  }
  return parts;
}

}  // namespace pruner
