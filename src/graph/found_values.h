// Values of which only a part is used: what NonZero and its like find, whose extent the data say at
// run time. What reads one would take the rest for values, too, so that it can be an output only.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "graph/graph.h"

namespace pruner {

class FoundValues {
 public:
  /// Takes the next node of a graph, in order; an error where it reads such a value. True: it makes
  /// one.
  Result<bool> add(const Graph& graph, const Node& node);

 private:
  std::map<ValueId, std::string> makers_;  // the operator that finds it
};

/// Returns the operator whose finds the inputs of `node` are made of, directly or through the nodes
/// of the graph; nothing where they are made of none.
std::optional<std::string> finder_of(const Graph& graph, const Node& node);

/// Says that `node` reads what the operator `maker` finds.
Error reads_found_values(const Graph& graph, const Node& node, const std::string& maker);

}  // namespace pruner
