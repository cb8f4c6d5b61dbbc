// Repacked operands: the order in which a loop nest reads a weight. Constants are packed ahead of
// time, so the copy costs nothing when the kernel runs (Ansor's layout rewrite, with padding).
// Constants in another type.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "support/json.h"
#include "tensor/tensor.h"
#include "tensor/transform.h"

namespace pruner {

/// The storage of a constant: the result of a form's transform, if any, with its elements in
/// another order. Packed shape: for each d of `order`, the extent of original dim d divided by its
/// block (rounded up); then one dim for each of `blocks`, of that block's size. Padding is zero.
struct PackSpec {
  std::vector<int> order;                       // empty: the elements keep their order
  std::vector<std::pair<int, int64_t>> blocks;  // (original dim, block)
  Transform transform = {};                     // applied first

  bool identity() const { return order.empty() && transform == Transform::kNone; }
  /// Returns the shape that pack() gives a tensor of `shape`.
  std::vector<int64_t> packed_shape(std::span<const int64_t> shape) const;
  DType packed_type(DType type) const { return transformed_type(type, transform); }
  /// Returns the size in bytes that pack() gives a tensor of `shape` and `type`.
  int64_t packed_bytes(DType type, std::span<const int64_t> shape) const;
  friend bool operator==(const PackSpec&, const PackSpec&) = default;
};

/// Returns a tensor of spec.packed_shape(), or the same tensor if the spec is the identity.
Tensor pack(const Tensor& tensor, const PackSpec& spec);
/// Writes the bytes of pack(tensor, spec) to `to`, where zeros are.
void pack_into(const Tensor& tensor, const PackSpec& spec, std::byte* to);
/// The elements of a float32 or narrower float tensor rounded to another such type.
Tensor rounded_to(DType type, const Tensor& tensor);
Json to_json(const PackSpec& spec);
/// Errors: an order that does not name every dim once, a block of no such dim or of size 0, a
/// transform that there is none of.
Result<PackSpec> pack_spec_from_json(const Json& json);

}  // namespace pruner
