// Values of which only a part is used: what NonZero and its like find, whose extent the data say at
// run time. What reads one would take the rest for values, too, so that it can be an output only.
#pragma once

#include <map>

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

}  // namespace pruner
