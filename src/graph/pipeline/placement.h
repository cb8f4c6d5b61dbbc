// Which of a pipeline's stages computes each node of a network.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/pipeline/varying_network.h"

namespace pruner {

/// The loops whose rounds the data say: the nodes of graph/ops/loop.cpp around each, and the nodes
/// of its rounds. A loop is called by the number that `numbers` has for its name.
struct LoopNodes {
  std::map<std::string, size_t> numbers = {};
  std::vector<std::vector<size_t>> around = {};  // by loop
  std::vector<int> round_of = {};                // by node: the loop; -1: it is in no rounds

  size_t loop_of(const Node& node) const { return numbers.at(loop_name(node)); }
};

struct Placement {
  LoopNodes loops;
  std::vector<Symbols> stages;  // in an order in which they can be run: what each depends on
  std::vector<int> stage_of;    // by node; -1: no stage computes it
};

/// Gives nodes that are equally deep and depend on the same symbols to one stage. The error names a
/// loop in a loop.
Result<Placement> place_nodes(const VaryingNetwork& network);

}  // namespace pruner
