// What the factors of a contraction become before they are multiplied, and what type adds up.
#pragma once

#include <optional>

#include "tensor/dtype.h"

namespace pruner {

struct Products {
  std::optional<DType> sums = {};  // and the result's; none: the operands' sum_type()
  bool tf32 = false;               // factors of float32 are rounded by round_to_tf32()

  Products() = default;
  Products(std::optional<DType> sums, bool tf32 = false) : sums(sums), tf32(tf32) {}
  Products(DType sums) : sums(sums) {}
};

}  // namespace pruner
