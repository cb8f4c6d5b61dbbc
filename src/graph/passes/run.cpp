#include "graph/passes.h"

namespace pruner {

Graph run_graph_passes(Graph graph,
                       const std::function<void(std::string_view, const Graph&)>& after) {
  for (const GraphPass& pass : kGraphPasses) {
    graph = pass.run(std::move(graph));
    if (after) after(pass.name, graph);
  }
  return graph;
}

}  // namespace pruner
