// A norm that several products on a GPU's matrix instructions read, or sums of their results, is
// repeated, one for each reader: each kernel then makes its own, and no launch is left for the norm
// (passes/fuse.cpp). A norm that another node reads, too, stays one.
#include <map>

#include "graph/held_operand.h"
#include "graph/rewriter.h"

namespace pruner {
namespace {

// Returns the nodes that read a norm, if each of them can make it; else none.
std::vector<size_t> makers_of_own(const Graph& graph,
                                  const Readers& readers,
                                  const Node& norm,
                                  const PassOptions& options) {
  if (!normalizes_rows({graph, norm})) return {};
  const ValueId result = norm.outputs[0];
  const std::vector<size_t>& all = readers[static_cast<size_t>(result.value)];
  for (const size_t i : all) {
    if (i == graph.nodes.size()) return {};
    const Node& reader = graph.nodes[i];
    if (!may_hold({graph, reader}, result, options) && !may_add(graph, reader, result, options))
      return {};
  }
  return all.size() > 1 ? all : std::vector<size_t>();
}

}  // namespace

Graph repeat_norms(Graph graph, const PassOptions& options) {
  if (!holds_operands(options)) return graph;
  const Graph old = graph;  // shares the tensors
  const Readers readers = readers_of(old);
  Rewriter r(std::move(graph));
  std::vector<Node> nodes = r.take_nodes();
  for (size_t i = 0; i < nodes.size(); ++i) {
    const std::vector<size_t> own = makers_of_own(old, readers, old.nodes[i], options);
    std::map<size_t, ValueId> made;  // norm of each reader
    for (const size_t reader : own) {
      // A product and its gate are one kernel.
      const Node* gate = gate_of(old, readers, old.nodes[reader]);
      const size_t owner = gate == nullptr ? reader : static_cast<size_t>(gate - old.nodes.data());
      if (!made.contains(owner)) made[owner] = r.add(Node(nodes[i]));
      for (ValueId& input : nodes[reader].inputs)
        if (input == old.nodes[i].outputs[0]) input = made[owner];
    }
    if (own.empty()) r.emit(std::move(nodes[i]));
  }
  return r.finish();
}

}  // namespace pruner
