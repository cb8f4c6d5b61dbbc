// Several networks as one: a module of many networks takes less time to build than many modules.
#pragma once

#include "graph/graph.h"

namespace pruner {

/// Appends `graph` to `all`. No value or node of one network is read by another.
void append_graph(Graph& all, const Graph& graph);

}  // namespace pruner
