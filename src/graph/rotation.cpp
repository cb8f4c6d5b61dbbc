#include "graph/rotation.h"

#include <algorithm>
#include <set>

namespace pruner {

constexpr int64_t kWidestHead = 256;
constexpr int64_t kFewestRows = 16;
constexpr size_t kMostNodes = 16;  // nodes of a rotation; usual rotations have 6 to 12

Readers readers_of(const Graph& graph) {
  Readers readers(graph.values.size());
  const auto add = [&](ValueId id, size_t node) {
    if (!id.valid()) return;
    std::vector<size_t>& of = readers[static_cast<size_t>(id.value)];
    if (of.empty() || of.back() != node) of.push_back(node);
  };
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    for (const ValueId id : graph.nodes[i].inputs) add(id, i);
  for (const ValueId id : graph.outputs) add(id, graph.nodes.size());
  return readers;
}

// Whether a reshape parts the last dimension, and it alone.
static bool parts_last(const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
  return to.size() == from.size() + 1 && std::equal(from.begin(), from.end() - 1, to.begin());
}

static bool is_along_last(const OpCall& call) {
  const int64_t rank = call.rank();
  if (call.node.op == "Concat")
    return !call.node.in_place && *call.axis("axis", 0, rank) == rank - 1;
  if (!call.has(3)) return false;
  const std::vector<int64_t> axes = *call.constant_integers(3, "axes");
  return axes.size() == 1 && *normal_axis(axes[0], rank) == rank - 1;
}

bool exchanges_heads(const OpCall& call) {
  return call.node.op == "Transpose" && call.integers("perm") == std::vector<int64_t>{0, 2, 1, 3};
}

static bool may_rotate(const OpCall& call) {
  const std::string& op = call.node.op;
  if (op == "Reshape") return parts_last(call.shape(0), call.output().shape);
  if (call.rank() == 0 || call.shape(0).back() > kWidestHead) return false;
  if (exchanges_heads(call)) return true;
  return op == "Slice" || op == "Concat" ? is_along_last(call)
                                         : find_graph_op(op)->fusion <= Fusion::kBroadcast;
}

std::optional<std::vector<size_t>> rotation_of(const Graph& graph,
                                               const Readers& readers,
                                               ValueId product) {
  const std::vector<int64_t>& shape = graph[product].shape;
  if (shape.empty() || element_count(shape) < kFewestRows * shape.back()) return std::nullopt;
  // In the order of the nodes; one that alone is open is on all paths from the product.
  const auto& first = readers[static_cast<size_t>(product.value)];
  std::set<size_t> open(first.begin(), first.end());
  std::vector<size_t> nodes;
  bool joins = false;
  while (!open.empty() && nodes.size() < kMostNodes) {
    const size_t at = *open.begin();
    open.erase(open.begin());
    if (at == graph.nodes.size()) return std::nullopt;
    const Node& node = graph.nodes[at];
    if (!may_rotate({graph, node})) return std::nullopt;
    nodes.push_back(at);
    joins = joins || node.op == "Concat";
    if (open.empty() && joins) return nodes;
    const auto& next = readers[static_cast<size_t>(node.outputs[0].value)];
    open.insert(next.begin(), next.end());
  }
  return std::nullopt;
}

}  // namespace pruner
