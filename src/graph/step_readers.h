// Finds the values that are read by an operator that jumps, such as Floor or a comparison. A
// rewrite that changes the last digit of such a value may change a result by a whole step.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace pruner {

/// Says, by value, whether an operator that jumps reads it: itself, or through operators that round
/// their result once at most (Add, Relu, Reshape). Sums of many terms, exponentials and other
/// functions end such a path, because their own last digit is not defined.
std::vector<bool> read_by_steps(const Graph& graph);

}  // namespace pruner
