// The import of a part of a network (ImportPart): the nodes on the way from the values that are
// given to those that are wanted, and no others.
#include <algorithm>
#include <ranges>

#include "graph/evaluate.h"
#include "graph/found_values.h"
#include "graph/onnx/checks.h"
#include "graph/onnx/importer.h"
#include "graph/onnx/node_order.h"

namespace pruner {

// Returns the value that the part is given as `name`; the first call adds the value.
ValueId Importer::given_value(const std::string& name) {
  const auto [known, fresh] = given_.try_emplace(name);
  if (fresh) {
    const auto& [dtype, shape] = options_.part->given.at(name);
    known->second = add_value({name, dtype, shape, std::nullopt});
    if (element_count(shape) == 0) graph_.values.back().constant = Tensor(dtype, shape);
  }
  return known->second;
}

// Returns the value that a name stands for in a scope, or that is given for the name; null: none.
const Entry* Importer::find(const std::string& name, NameScope& scope) {
  if (const Entry* entry = scope.find(name)) return entry;
  if (options_.part == nullptr) return nullptr;
  for (const NameScope* at = &scope; at != nullptr; at = at->outer) {
    if (!is_given(at->prefix + name)) continue;
    return &scope.names.emplace(name, given_value(at->prefix + name)).first->second;
  }
  return nullptr;
}

bool Importer::is_wanted(const std::string& name) const {
  const std::set<std::string>& wanted = options_.part->wanted;
  return wanted.contains(name) || wants_inside(name + "/");
}

bool Importer::wants_inside(const std::string& prefix) const {
  const auto next = options_.part->wanted.lower_bound(prefix);
  return next != options_.part->wanted.end() && next->starts_with(prefix);
}

std::set<std::string> Importer::needed_outputs(const onnx::NodeProto& node,
                                               const onnx::GraphProto& body,
                                               const std::set<std::string>& names,
                                               const std::string& prefix) const {
  std::set<std::string> needed;
  for (int i = 0; i < std::min(node.output_size(), body.output_size()); ++i)
    if (names.contains(node.output(i)) || is_wanted(prefix + node.output(i)))
      needed.insert(body.output(i).name());
  return needed;
}

// Adds the names of this scope that a node reads for the outputs that are in `names`.
void Importer::add_needed_reads(const onnx::NodeProto& node,
                                const std::string& prefix,
                                std::set<std::string>& names) const {
  const std::string own = prefix + inner_name(node);
  const std::optional<bool> branch = known_branch(own);
  if (node.op_type() != "If" || (!branch && !is_given(condition_of(own))))
    return add_reads(node, names);
  std::set<std::string> all;  // names that the branches read
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    const bool then = attribute.name() == "then_branch";
    if (branch && then != *branch) continue;
    const onnx::GraphProto& graph = attribute.g();
    const Result<std::vector<int>> order = node_order(graph.node());
    if (!order.ok()) continue;
    std::set<std::string> inner;
    needed_nodes(graph.node(),
                 *order,
                 needed_outputs(node, graph, names, prefix),
                 own + (branch ? "/"
                        : then ? "/then/"
                               : "/else/"),
                 inner);
    for (const auto& tensor : graph.initializer()) inner.erase(tensor.name());
    for (const onnx::NodeProto& maker : graph.node())
      for (const std::string& name : maker.output()) inner.erase(name);
    all.merge(inner);
  }
  names.merge(all);
  names.erase("");
}

// Returns the nodes of a graph that are needed for the values `names` and for the wanted values in
// the graph; `reads` becomes these names and all names that the nodes read.
std::vector<int> Importer::needed_nodes(const NodeList& nodes,
                                        std::span<const int> order,
                                        std::set<std::string> names,
                                        const std::string& prefix,
                                        std::set<std::string>& reads) const {
  std::vector<int> needed;
  for (const int i : order | std::views::reverse) {
    const onnx::NodeProto& node = nodes[i];
    bool is_needed = wants_inside(prefix + inner_name(node) + "/");
    for (const std::string& name : node.output()) {
      if (name.empty()) continue;
      is_needed |= is_wanted(prefix + name) || (names.contains(name) && !is_given(prefix + name));
    }
    if (!is_needed) continue;
    needed.push_back(i);
    add_needed_reads(node, prefix, names);
  }
  std::ranges::reverse(needed);
  reads = std::move(names);
  return needed;
}

// Returns the nodes of the main graph that the part needs, found once for all shapes.
std::shared_ptr<const PartNodes> Importer::part_nodes(const NodeList& nodes) {
  // Each list that the file's nodes were expanded to lives as long as the file.
  std::string key = std::to_string(reinterpret_cast<uintptr_t>(&nodes)) + '\n';
  for (const std::string& name : options_.part->wanted) key += name + '\n';
  for (const auto& [name, given] : options_.part->given) key += '\n' + name;
  return file_.part(key, [&]() -> PartNodes {
    PartNodes part;
    const Result<std::vector<int>> order = node_order(nodes);
    // The import of the whole network has reported any error in the order.
    if (order.ok()) part.order = needed_nodes(nodes, *order, {}, "", part.read);
    // "boxes/room" is made of the output "boxes".
    for (std::string name : options_.part->wanted) {
      part.read.insert(name);
      while (name.rfind('/') != std::string::npos) {
        name.resize(name.rfind('/'));
        part.read.insert(name);
      }
    }
    return part;
  });
}

// The inputs of the graph are the given values, its outputs the wanted values, each in the order of
// the names.
Result<Graph> Importer::run_part() {
  const onnx::GraphProto& graph = model_.graph();
  graph_.name = graph.name();
  TRY_ASSIGN(const int64_t opset, check_versions(model_));
  const CallFrame frame{opset, {}};
  NameScope scope{&frame, nullptr, "", 0};
  TRY_ASSIGN(const NodeList* nodes, main_nodes());
  const std::shared_ptr<const PartNodes> part = part_nodes(*nodes);
  scope.read = part->read;
  for (const onnx::TensorProto& proto : graph.initializer())
    if (scope.read.contains(proto.name())) TRY(add_initializer(proto, true, scope));
  const Body body{part->order, part->read, options_.part->wanted};
  for (const int i : body.order) TRY(add_node((*nodes)[i], body, scope));

  std::map<std::string, ValueId> by_name;
  for (size_t v = 0; v < graph_.values.size(); ++v)
    by_name[graph_.values[v].name] = ValueId{static_cast<int32_t>(v)};
  for (const auto& [name, given] : options_.part->given) {
    const auto [known, unread] = given_.try_emplace(name);
    if (unread) known->second = add_value({name, given.dtype, given.shape, std::nullopt});
    graph_.inputs.push_back(known->second);
  }
  for (const std::string& name : options_.part->wanted) {
    const auto it = by_name.find(name);
    if (it != by_name.end()) {
      graph_.outputs.push_back(it->second);
      continue;
    }
    // A value that was made in a body has another name in the body.
    const Entry* entry = scope.find(name);
    const auto* made = entry == nullptr ? nullptr : std::get_if<ValueId>(entry);
    if (made == nullptr || !made->valid()) return Error("\"", name, "\" is made by no node here");
    TRY_ASSIGN(const std::vector<ValueId> named, add("Identity", {*made}, {}, name));
    graph_.outputs.push_back(named[0]);
  }
  return std::move(graph_);
}

}  // namespace pruner
