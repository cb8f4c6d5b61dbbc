#include "join_graphs.h"

#include <algorithm>
#include <iterator>

namespace pruner {

void append_graph(Graph& all, const Graph& graph) {
  const auto first = static_cast<int32_t>(all.values.size());
  const std::string prefix = "g" + std::to_string(all.outputs.size()) + "_";
  const auto moved = [&](std::vector<ValueId> ids) {
    for (ValueId& id : ids)
      if (id.valid()) id.value += first;
    return ids;
  };
  for (Value value : graph.values) {
    value.name = prefix + value.name;
    all.values.push_back(std::move(value));
  }
  for (Node node : graph.nodes) {
    node.name = prefix + node.name;
    node.inputs = moved(std::move(node.inputs));
    node.outputs = moved(std::move(node.outputs));
    all.nodes.push_back(std::move(node));
  }
  std::ranges::copy(moved(graph.inputs), std::back_inserter(all.inputs));
  std::ranges::copy(moved(graph.outputs), std::back_inserter(all.outputs));
}

}  // namespace pruner
