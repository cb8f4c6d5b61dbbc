// A cache that an instance keeps: TensorScatter of a state, whose next content it makes, becomes
// UpdateState, which writes the new rows alone where nothing else reads the old content.
#include <algorithm>

#include "graph/passes.h"

namespace pruner {

Graph update_states(Graph graph) {
  for (Node& node : graph.nodes) {
    const bool updates = std::ranges::any_of(graph.states, [&](const State& state) {
      return graph.inputs[static_cast<size_t>(state.input)] == node.inputs[0] &&
             graph.outputs[static_cast<size_t>(state.output)] == node.outputs[0];
    });
    // Without an index it begins at 0: that is no cache.
    if (node.op == "TensorScatter" && node.inputs.size() == 3 && updates) node.op = "UpdateState";
  }
  return graph;
}

}  // namespace pruner
