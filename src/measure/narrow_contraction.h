// Finds what is known of the rounding of a DAG that contracts narrow numbers (bfloat16, float16,
// bytes). The rounding says how exactly the DAG's kernels have to agree with the interpreter.
#pragma once

#include <optional>
#include <vector>

#include "support/rng.h"
#include "tensor/compute_dag.h"
#include "tensor/tensor.h"

namespace pruner {

/// How the value of an output follows from the one contraction of narrow numbers before it. All
/// stages between them are as wide as their sums.
struct SumsBehind {
  StageId contraction;
  int64_t terms = 0;     // terms of each sum
  int stages = 0;        // stages after the contraction, up to the output
  bool rounded = false;  // the output is a cast of float32 to a narrow float, the only rounding
  std::optional<double> gain;  // error of the output / error of the sums, at most; none: not known
};

/// None: there is no such contraction, or several, or narrow values are computed before it or after
/// it, which a kernel may round the other way.
std::optional<SumsBehind> sums_behind(const ComputeDag& dag, StageId output);

/// The DAG without the rounding of an output that SumsBehind::rounded tells of.
ComputeDag before_last_rounding(const ComputeDag& dag, StageId output);

/// Whether it contracts narrow numbers, and every value that it computes of whole_numbers() is a
/// whole number that its type holds (below 2^24 of float32), so that no order of the sums changes a
/// bit: sums, differences, products, minima and maxima of such numbers, what is chosen among them
/// or rounded to a whole number. An output may be rounded to a narrow type.
bool is_exact_on_whole_numbers(const ComputeDag& dag);

/// Inputs from -8 to 8, bytes from -4 or 0 to 4.
std::vector<Tensor> whole_numbers(const ComputeDag& dag, Rng& rng);

}  // namespace pruner
