// Random networks of a few operators, for tests: a seed gives one network, the values of its
// inputs, and what the interpreter computes for each of its values. Rounding decides nothing in
// such a network: an operator that chooses by comparing numbers (ArgMax, the places of TopK,
// comparisons) reads only values that every schedule computes bit for bit.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace pruner {

struct RandomGraph {
  uint64_t seed = 0;
  Graph graph;
  std::vector<Tensor> tensors;     // the interpreter's results, one a value of the graph
  std::vector<double> tolerances;  // the largest difference that rounding may make, one a value
};

/// Draws a network of 1 to 8 steps, each of which is one operator or a few that belong together.
RandomGraph random_graph(uint64_t seed);

}  // namespace pruner
