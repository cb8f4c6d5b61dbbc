#include "graph/found_values.h"

#include "graph/evaluate.h"
#include "graph/ops/op.h"

namespace pruner {

Result<bool> FoundValues::add(const Graph& graph, const Node& node) {
  for (const ValueId id : node.inputs) {
    const auto maker = makers_.find(id);
    if (maker == makers_.end()) continue;
    if (node.op == "Identity") {
      makers_[node.outputs[0]] = maker->second;
      return true;
    }
    return Error(node_label(graph, node),
                 ": reads what ",
                 maker->second,
                 " finds, whose extent the data say at run time; that can be an output of the "
                 "network only, or has to follow from constants");
  }
  if (!find_graph_op(node.op)->is(kIsAsLongAsFound) || is_constant_call(graph, node)) return false;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    // Unique's inverse indices are one for each slice of its input.
    if (node.op != "Unique" || i != 2) makers_[node.outputs[i]] = node.op;
  }
  return true;
}

}  // namespace pruner
