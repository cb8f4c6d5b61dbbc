// Nodes whose inputs are all known become constants. The rewriter does so with whatever it emits.
#include "graph/passes.h"
#include "graph/rewriter.h"

namespace pruner {

Graph fold_constants(Graph graph) {
  Rewriter r(std::move(graph));
  for (Node& node : r.take_nodes()) r.emit(std::move(node));
  return r.finish();
}

}  // namespace pruner
