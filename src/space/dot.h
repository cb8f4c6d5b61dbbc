// Instructions that add several products of narrow numbers to each sum of a vector (AVX512-BF16's,
// AVX512-VNNI's), and the contractions that they compute.
#pragma once

#include <string_view>

#include "target/target.h"
#include "tensor/compute_dag.h"

namespace pruner {

/// sum += a[0] * b[0] + ... + a[terms - 1] * b[terms - 1] in each lane.
struct DotInstruction {
  std::string_view name;
  DType a, b, sum;
  int terms;
  double DotRates::*rate;
};

/// That which adds products of elements of types `a` and `b`, in this order or the other; null:
/// there is none.
const DotInstruction* find_dot_instruction(DType a, DType b, DType sum);

/// That of a contraction whose products, both factors cast from a narrow type, it adds along the
/// last reduce axis longer than 1, where it is faster than FMAs on `target`. Null where there is
/// none, where its terms do not divide the axis, or where no constant can be packed for it.
const DotInstruction* find_dot_instruction(const ComputeDag& dag,
                                           StageId stage,
                                           const Target& target);

}  // namespace pruner
