// Nodes behind those whose outputs are as long as the data say: graph/found_values.h.
#include <fmt/ranges.h>

#include <algorithm>

#include "graph/evaluate.h"
#include "graph/found_values.h"
#include "graph/onnx/importer.h"
#include "support/check.h"

namespace pruner {

namespace {

// Returns the axis of an output that is as long as what is found; nullopt: there is none.
std::optional<int64_t> found_axis(const Graph& graph, const Node& finder, size_t output) {
  const OpCall call{graph, finder};
  if (finder.op == "NonZero") return 1;
  if (finder.op == "NonMaxSuppression") return 0;
  if (finder.op == "pruner::Compress") return *call.axis("axis", 0, call.rank());
  // Unique's inverse indices are one for each slice of its input.
  if (output == 2) return std::nullopt;
  return output == 0 && call.has_attribute("axis") ? *call.axis("axis", 0, call.rank()) : 0;
}

}  // namespace

// Adds a new value like `part`, which has room for all that may be found.
ValueId Importer::add_room(ValueId part) {
  Value room = graph_[part];
  room.name += "/room";
  return add_value(std::move(room));
}

// Appends a kFound or kExtent. Its symbol has the extent that the import takes for it.
Result<Unit> Importer::add_between(Node node) {
  const auto& symbol = std::get<std::string>(node.attributes.at("symbol"));
  const auto extent = options_.found->extents.find(symbol);
  if (extent != options_.found->extents.end()) node.attributes["extent"] = extent->second;
  TRY(infer_node(graph_, node));
  graph_.nodes.push_back(std::move(node));
  made_by_.resize(graph_.values.size(), -1);
  note_varying(graph_.nodes.size() - 1);
  return Unit{};
}

// Appends the kFound that makes `part` of `room`. `count` is invalid if the extent belongs to
// several parts together.
Result<Unit> Importer::add_part(
    ValueId room, ValueId part, int64_t axis, const std::string& symbol, ValueId count) {
  Node found{kFound, "", {room}, {part}, {{"axis", axis}, {"symbol", symbol}}};
  if (count.valid()) found.inputs.push_back(count);
  graph_[part].constant.reset();
  return add_between(std::move(found));
}

// Makes a TopK whose k the data say find all elements in order; nullopt: the node is no such TopK.
std::optional<Importer::FirstOfAll> Importer::find_all(Node& node) {
  if (!reads_found() || node.op != "TopK" || node.inputs.size() != 2) return std::nullopt;
  const ValueId k = node.inputs[1];
  const OpCall call{graph_, node};
  const Result<int64_t> axis = call.axis("axis", -1, call.rank());
  if (!axis.ok() || graph_[k].constant || graph_[k].dtype != DType::kInt64 ||
      element_count(graph_[k].shape) != 1)
    return std::nullopt;
  const int64_t all = call.shape(0)[static_cast<size_t>(*axis)];
  node.inputs[1] = add_integers(graph_[node.outputs[0]].name + "/all", {{all}});
  return FirstOfAll{k, *axis};
}

// Puts a kFound behind each output of a TopK, whose nodes begin with number `first`.
Result<Unit> Importer::add_first(std::span<const ValueId> outputs,
                                 const FirstOfAll& wanted,
                                 size_t first) {
  const std::string symbol = graph_[outputs[0]].name;
  for (const ValueId part : outputs) {
    const ValueId room = add_room(part);
    for (size_t n = first; n < graph_.nodes.size(); ++n) {
      std::ranges::replace(graph_.nodes[n].inputs, part, room);
      std::ranges::replace(graph_.nodes[n].outputs, part, room);
    }
    TRY(add_part(room, part, wanted.axis, symbol, wanted.count));
  }
  return Unit{};
}

// Returns how many places a node finds, as a tensor of one element. Places that are not negative
// count, and elements of a condition that are true.
Result<ValueId> Importer::count_found(const Node& finder, ValueId room) {
  const std::string name = graph_[room].name + "/count";
  int steps = 0;
  const auto first = [&](const std::string& op, std::vector<ValueId> inputs, Attributes with) {
    const std::string own = op == "ReduceSum" ? name : fmt::format("{}/{}", name, steps++);
    return add(op, std::move(inputs), std::move(with), own);
  };
  std::vector<ValueId> found = {room};
  if (finder.op == "pruner::Compress") {
    found = {finder.inputs[1]};
  } else if (finder.op == "Unique") {
    found = {finder.outputs[1]};
  } else {
    const ValueId zero = add_integer(name + "/first", 0);
    const int64_t axis = finder.op == "NonZero" ? 0 : 1;
    TRY_ASSIGN(found, first("Gather", {room, zero}, {{"axis", axis}}));
  }
  if (finder.op != "pruner::Compress") {
    const ValueId zero = add_integer(name + "/zero", 0);
    TRY_ASSIGN(found, first("GreaterOrEqual", {found[0], zero}, {}));
  }
  TRY_ASSIGN(found, first("Cast", {found[0]}, {{"to", std::string("int64")}}));
  const ValueId axes = add_integers(name + "/axes", {{0}});
  TRY_ASSIGN(found, first("ReduceSum", {found[0], axes}, {{"keepdims", int64_t{1}}}));
  return found[0];
}

// Returns the symbol of the extent of what a node finds or joins; `name` is the node's output.
// nullopt: the extent has no symbol.
std::optional<std::string> Importer::found_symbol(const Node& finder, const std::string& name) {
  const FoundExtents& known = *options_.found;
  if (finder.op == "Concat") {
    const auto joined = known.joined.find(name);
    return joined == known.joined.end() ? std::nullopt : std::optional(joined->second);
  }
  const GraphOp* op = find_graph_op(finder.op);
  if (op == nullptr || !op->is(kIsAsLongAsFound)) return std::nullopt;
  // Places that are found twice have one extent.
  std::vector<int64_t> inputs;
  for (const ValueId id : finder.inputs) inputs.push_back(id.value);
  const std::string what = fmt::format(
      "{} {} {}", finder.op, fmt::join(inputs, " "), OpCall{graph_, finder}.integer("axis", -1));
  const auto [it, fresh] = found_symbols_.try_emplace(what, name);
  for (const auto& [other, symbol] : found_symbols_)
    if (fresh && other != what && symbol == it->second) it->second += "'";
  const bool is_known = known.extents.contains(it->second);
  if (!is_known && (known.all_known || is_constant_call(graph_, finder))) return std::nullopt;
  return it->second;
}

// Puts a kFound behind each output whose extent the node finds, or that joins such outputs.
Result<Unit> Importer::add_found(size_t number) {
  Node finder = graph_.nodes[number];
  // Compress is a function, which hands its result on under the name that the file has for it.
  const bool handed_on = finder.op == "pruner::Compress";
  CHECK(!handed_on || graph_.nodes[number + 1].op == "Identity") << "Compress has another body";
  const ValueId named = handed_on ? graph_.nodes[number + 1].outputs[0] : finder.outputs[0];
  const std::optional<std::string> symbol = found_symbol(finder, graph_[named].name);
  if (!symbol) return Unit{};
  graph_[finder.outputs[0]].name = graph_[named].name;
  const bool joins = finder.op == "Concat";
  if (const auto limit = options_.found->limits.find(*symbol);
      limit != options_.found->limits.end()) {
    const std::optional<double> most = OpCall{graph_, finder}.scalar(2);
    const double least = std::min(most.value_or(0), static_cast<double>(limit->second));
    const std::string name = graph_[finder.outputs[0]].name + "/most";
    if (most) finder.inputs[2] = add_integer(name, static_cast<int64_t>(least));
  }
  // Each output is a new value, and its part has the place that others read.
  const std::vector<ValueId> parts = finder.outputs;
  if (finder.op == "Unique" && finder.outputs.size() < 2)
    finder.outputs.push_back(add_value({graph_[parts[0]].name + "/places", {}, {}, std::nullopt}));
  std::vector<std::optional<int64_t>> axes;
  for (size_t i = 0; i < parts.size(); ++i) {
    const OpCall call{graph_, finder};
    axes.push_back(joins ? *call.axis("axis", 0, call.rank()) : found_axis(graph_, finder, i));
    if (axes[i]) finder.outputs[i] = add_room(parts[i]);
  }
  TRY(infer_node(graph_, finder));
  graph_.nodes[number] = finder;
  made_by_.resize(graph_.values.size(), -1);
  const size_t before = graph_.nodes.size();
  ValueId count;
  if (!joins) {
    TRY_ASSIGN(count, count_found(finder, finder.outputs[0]));
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    if (axes[i]) TRY(add_part(finder.outputs[i], parts[i], *axes[i], *symbol, count));
  }
  // The other nodes of the finder's function read these nodes, and were inferred without them.
  const auto behind = graph_.nodes.begin() + static_cast<ptrdiff_t>(number) + 1;
  const auto added = graph_.nodes.begin() + static_cast<ptrdiff_t>(before);
  auto rest = std::rotate(behind, added, graph_.nodes.end());
  if (handed_on) {
    Node& found = *(rest - 1);
    found.outputs = rest->outputs;
    graph_[parts[0]].name.clear();
    TRY(infer_node(graph_, found));
    rest = graph_.nodes.erase(rest);
  }
  for (auto node = rest; node != graph_.nodes.end(); ++node) TRY(infer_node(graph_, *node));
  return Unit{};
}

}  // namespace pruner
