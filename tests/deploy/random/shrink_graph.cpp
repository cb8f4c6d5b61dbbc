#include "shrink_graph.h"

#include <algorithm>
#include <cmath>

namespace pruner {

static constexpr double kShare = 1e-3;  // share of a value that rounding may change

// Drops the nodes that no output needs and the inputs that no node reads.
static void drop_unread(Graph& graph) {
  std::vector<bool> needed(graph.values.size(), false);
  for (const ValueId id : graph.outputs) needed[static_cast<size_t>(id.value)] = true;
  std::vector<Node> kept;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const bool used = std::ranges::any_of(
        node->outputs, [&](ValueId id) { return needed[static_cast<size_t>(id.value)]; });
    if (!used) continue;
    for (const ValueId id : node->inputs)
      if (id.valid()) needed[static_cast<size_t>(id.value)] = true;
    kept.push_back(*node);
  }
  std::ranges::reverse(kept);
  graph.nodes = std::move(kept);
  std::erase_if(graph.inputs, [&](ValueId id) { return !needed[static_cast<size_t>(id.value)]; });
}

// Floats that are no longer dequantized are not multiplied as bytes: what was exact is rounded.
static void allow_rounding(RandomGraph& graph) {
  for (size_t v = 0; v < graph.tensors.size(); ++v) {
    const Tensor& tensor = graph.tensors[v];
    if (!is_float(tensor.dtype())) continue;
    double largest = 0;
    for (int64_t i = 0; i < tensor.num_elements(); ++i)
      largest = std::max(largest, std::abs(tensor.get(i)));
    if (std::isfinite(largest))
      graph.tolerances[v] = std::max(graph.tolerances[v], kShare * largest);
  }
}

std::vector<RandomGraph> smaller_graphs(const RandomGraph& graph) {
  std::vector<RandomGraph> smaller;
  for (size_t kept = 0; graph.graph.outputs.size() > 1 && kept < graph.graph.outputs.size();
       ++kept) {
    RandomGraph& one = smaller.emplace_back(graph);
    one.graph.outputs = {graph.graph.outputs[kept]};
    drop_unread(one.graph);
  }
  for (size_t n = graph.graph.nodes.size(); n-- > 0;) {
    RandomGraph one = graph;
    const Node node = one.graph.nodes[n];
    one.graph.nodes.erase(one.graph.nodes.begin() + static_cast<long>(n));
    std::erase_if(one.graph.outputs, [&](ValueId id) {
      return std::ranges::find(node.outputs, id) != node.outputs.end();
    });
    for (const ValueId id : node.outputs)
      if (!one.graph[id].constant) one.graph.inputs.push_back(id);
    drop_unread(one.graph);
    if (node.op == "Dequantize" || node.op == "Identity") allow_rounding(one);
    if (!one.graph.outputs.empty() && !one.graph.nodes.empty()) smaller.push_back(std::move(one));
  }
  return smaller;
}

}  // namespace pruner
