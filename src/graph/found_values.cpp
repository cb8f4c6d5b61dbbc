#include "graph/found_values.h"

#include <algorithm>
#include <set>

#include "graph/evaluate.h"
#include "graph/ops/op.h"

namespace pruner {

Error reads_found_values(const Graph& graph, const Node& node, const std::string& maker) {
  return Error(node_label(graph, node),
               ": reads what ",
               maker,
               " finds, whose extent the data say at run time; that can be an output of the "
               "network only, or has to follow from constants");
}

std::optional<std::string> finder_of(const Graph& graph, const Node& node) {
  std::set<ValueId> read(node.inputs.begin(), node.inputs.end());
  for (auto it = graph.nodes.rbegin(); it != graph.nodes.rend(); ++it) {
    const bool makes =
        std::ranges::any_of(it->outputs, [&](ValueId id) { return read.contains(id); });
    if (!makes) continue;
    const GraphOp* op = find_graph_op(it->op);
    if (op != nullptr && op->is(kIsAsLongAsFound) && !is_constant_call(graph, *it)) return it->op;
    for (const ValueId id : it->inputs)
      if (id.valid() && !graph[id].constant) read.insert(id);
  }
  return std::nullopt;
}

Result<bool> FoundValues::add(const Graph& graph, const Node& node) {
  for (const ValueId id : node.inputs) {
    const auto maker = makers_.find(id);
    if (maker == makers_.end()) continue;
    if (node.op == "Identity") {
      makers_[node.outputs[0]] = maker->second;
      return true;
    }
    return reads_found_values(graph, node, maker->second);
  }
  if (!find_graph_op(node.op)->is(kIsAsLongAsFound) || is_constant_call(graph, node)) return false;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    // Unique's inverse indices are one for each slice of its input.
    if (node.op != "Unique" || i != 2) makers_[node.outputs[i]] = node.op;
  }
  return true;
}

}  // namespace pruner
