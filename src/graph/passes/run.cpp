#include "graph/passes.h"

namespace pruner {

Graph run_graph_passes(Graph graph,
                       const PassOptions& options,
                       const std::function<void(std::string_view, const Graph&)>& after) {
  for (const GraphPass& pass : kGraphPasses) {
    if (pass.cpu_only && options.target.is_gpu()) continue;
    if (pass.by_extents && graph.any_extents()) continue;
    graph = pass.run(std::move(graph), options);
    if (after) after(pass.name, graph);
  }
  return graph;
}

}  // namespace pruner
