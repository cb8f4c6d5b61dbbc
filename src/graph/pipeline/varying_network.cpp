#include "graph/pipeline/varying_network.h"

#include <algorithm>

#include "graph/evaluate.h"

namespace pruner {

void VaryingNetwork::index() {
  makers.assign(graph.values.size(), -1);
  rooms.clear();
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const ValueId id : graph.nodes[n].outputs) makers[id.value] = static_cast<int>(n);
    if (graph.nodes[n].op == kFound) rooms.insert(graph.nodes[n].inputs[0]);
  }
}

bool VaryingNetwork::is_true(ValueId id) const {
  return graph[id].dtype == DType::kBool && pruner::is_true(graph[id].constant);
}

const Node* VaryingNetwork::maker_of(ValueId id) const {
  const int maker = makers[id.value];
  return maker < 0 ? nullptr : &graph.nodes[static_cast<size_t>(maker)];
}

bool VaryingNetwork::is_found(const Node& node) { return node.op == kFound || node.op == kExtent; }
bool VaryingNetwork::is_found(ValueId id) const {
  const Node* maker = maker_of(id);
  return maker != nullptr && is_found(*maker);
}

bool VaryingNetwork::is_join(const Node& node) const {
  return node.op == "Concat" && rooms.contains(node.outputs[0]);
}
bool VaryingNetwork::is_joined(ValueId id) const {
  const Node* maker = maker_of(id);
  return maker != nullptr && is_join(*maker);
}

bool VaryingNetwork::begins_loop(ValueId id) const {
  const Node* maker = maker_of(id);
  return maker != nullptr && maker->op == kLoopBegin;
}

std::vector<ValueId> VaryingNetwork::read_between(const Node& node) const {
  if (!is_of_pipeline(node) && !is_join(node)) return {};
  std::vector<ValueId> read;
  for (const ValueId id : node.inputs) {
    if (!id.valid() || (node.op == kFound && is_joined(id))) continue;
    // How long a whole is follows from shapes, and what is true or has no elements is known.
    const bool is_known =
        is_true(id) || has_nothing(id) || (node.op == kLoopStack && id == node.inputs[0]);
    if (!is_loop_node(node) || !is_constant(id) || !is_known) read.push_back(id);
  }
  return read;
}

bool VaryingNetwork::grows_evenly(size_t stack) const {
  const Symbols& of = depends_on(graph.nodes[stack].outputs[0]);
  return of.empty() || (of.size() == 1 && !uneven_stacks.contains(stack));
}

bool asks_shape(const Node& node) { return node.op == "Shape" || node.op == "Size"; }

size_t symbol_of(const Pipeline& pipeline, const Node& found) {
  const std::string& name = std::get<std::string>(found.attributes.at("symbol"));
  return static_cast<size_t>(std::ranges::find(pipeline.symbols, name, &Symbol::name) -
                             pipeline.symbols.begin());
}

const std::string& loop_name(const Node& node) {
  return std::get<std::string>(node.attributes.at("loop"));
}

}  // namespace pruner
