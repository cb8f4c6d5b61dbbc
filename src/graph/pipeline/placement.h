// The assignment of a network's nodes to the stages of a pipeline that compute them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/pipeline/varying_network.h"

namespace pruner {

/// The loops whose rounds the data say: the nodes of graph/ops/loop.cpp around each loop, and the
/// nodes of its rounds. `numbers` maps the name of a loop to its number.
struct LoopNodes {
  std::map<std::string, size_t> numbers = {};
  std::vector<std::vector<size_t>> around = {};  // nodes around each loop
  std::vector<int> round_of = {};                // loop of each node; -1: the node is in no rounds

  size_t loop_of(const Node& node) const { return numbers.at(loop_name(node)); }
};

struct Placement {
  LoopNodes loops;
  std::vector<Symbols> stages;  // symbols of each stage, in an order that can be run
  std::vector<int> stage_of;    // stage of each node; -1: no stage computes the node
};

/// Gives nodes that are equally deep and depend on the same symbols to one stage. The error names a
/// loop in a loop.
Result<Placement> place_nodes(const VaryingNetwork& network);

}  // namespace pruner
