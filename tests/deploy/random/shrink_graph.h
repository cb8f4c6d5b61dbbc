// The networks that a failing network is reduced to, one step at a time.
#pragma once

#include <vector>

#include "random_graph.h"

namespace pruner {

/// Returns smaller networks. Each lacks one thing: an output, or a node whose results become
/// inputs. The smallest networks come first.
std::vector<RandomGraph> smaller_graphs(const RandomGraph& graph);

}  // namespace pruner
