// Repacked operands: the order in which a loop nest reads a weight. Constants are packed ahead of
// time, so the copy costs nothing when the kernel runs (Ansor's layout rewrite, with padding).
#pragma once

#include <utility>
#include <vector>

#include "support/json.h"
#include "tensor/tensor.h"

namespace pruner {

/// Packed shape: for each d of `order`, the extent of original dim d divided by its block (rounded
/// up); then one dim for each of `blocks`, of that block's size. Padding is zero.
struct PackSpec {
  std::vector<int> order;
  std::vector<std::pair<int, int64_t>> blocks;  // (original dim, block)

  bool identity() const { return order.empty(); }
  std::vector<int64_t> packed_shape(std::span<const int64_t> shape) const;
  friend bool operator==(const PackSpec&, const PackSpec&) = default;
};

Tensor pack(const Tensor& tensor, const PackSpec& spec);
Json to_json(const PackSpec& spec);
Result<PackSpec> pack_spec_from_json(const Json& json);

}  // namespace pruner
