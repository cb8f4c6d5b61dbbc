// Drops nodes that no output needs and values that nothing names; values are numbered anew.
#include <algorithm>

#include "graph/passes.h"

namespace pruner {

static size_t slot(ValueId id) { return static_cast<size_t>(id.value); }

Graph remove_dead(Graph graph) {
  std::vector<bool> live(graph.values.size(), false);
  for (const ValueId id : graph.outputs) live[slot(id)] = true;
  std::vector<Node> kept;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    // A node whose outputs are all known is not needed, even if they are read.
    const bool needed = std::any_of(node->outputs.begin(), node->outputs.end(), [&](ValueId id) {
      return live[slot(id)] && !graph[id].constant;
    });
    if (!needed) continue;
    for (const ValueId id : node->outputs) live[slot(id)] = true;
    for (const ValueId id : node->inputs) {
      if (id.valid()) live[slot(id)] = true;
    }
    kept.push_back(std::move(*node));
  }
  graph.nodes.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
  for (const ValueId id : graph.inputs) live[slot(id)] = true;

  std::vector<ValueId> renumbered(graph.values.size());
  std::vector<Value> values;
  for (size_t i = 0; i < live.size(); ++i) {
    if (!live[i]) continue;
    renumbered[i] = ValueId{static_cast<int32_t>(values.size())};
    values.push_back(std::move(graph.values[i]));
  }
  graph.values = std::move(values);
  const auto renumber = [&](std::vector<ValueId>& ids) {
    for (ValueId& id : ids) id = id.valid() ? renumbered[slot(id)] : id;
  };
  renumber(graph.inputs);
  renumber(graph.outputs);
  for (Node& node : graph.nodes) {
    renumber(node.inputs);
    renumber(node.outputs);
  }
  return graph;
}

}  // namespace pruner
