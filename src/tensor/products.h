// The rounding of a contraction's factors before the multiplication, and the type of the sums.
#pragma once

#include <optional>

#include "tensor/dtype.h"

namespace pruner {

struct Products {
  std::optional<DType> sums = {};  // type of sums and result; none: the operands' sum_type()
  bool tf32 = false;               // factors of float32 are rounded by round_to_tf32()

  Products() = default;
  Products(std::optional<DType> sums, bool tf32 = false) : sums(sums), tf32(tf32) {}
  Products(DType sums) : sums(sums) {}
};

}  // namespace pruner
