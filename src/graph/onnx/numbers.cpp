// Extents that numbers of the run time say: graph/onnx/expansion.h.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "graph/evaluate.h"
#include "graph/found_values.h"
#include "graph/onnx/constructs.h"
#include "graph/onnx/expansion.h"
#include "graph/onnx/node_writer.h"
#include "graph/onnx/tensor_proto.h"
#include "tensor/symbol.h"

namespace pruner {

// Whether integers of one type are the same ones in another.
static bool keeps_integers(DType from, DType to) {
  if (!is_integer(from) || !is_integer(to)) return false;
  if (is_signed_int(from)) return is_signed_int(to) && dtype_bytes(to) >= dtype_bytes(from);
  return dtype_bytes(to) >= dtype_bytes(from) + (is_signed_int(to) ? 1 : 0);
}

// Whether the only element of a node's result is the only element of its first input.
bool Importer::only_moves(const Node& node) {
  const std::string& op = node.op;
  const Value& from = graph_[node.inputs[0]];
  if (element_count(from.shape) != 1) return false;
  const DType to = graph_[node.outputs[0]].dtype;
  return is_alias(node.op) || op == "Gather" ||
         (op == "Cast" &&
          (keeps_integers(from.dtype, to) || (is_whole(node.inputs[0]) && dtype_bytes(to) == 8))) ||
         ((op == "Ceil" || op == "Floor") && is_whole(node.inputs[0]));
}

// Whether an element is an integer that a float64 and an int64 can hold.
bool Importer::is_whole(ValueId id) {
  const Value& value = graph_[id];
  if (value.constant && value.constant->num_elements() == 1) {
    const double element = value.constant->get(0);
    return element == std::floor(element) && std::abs(element) < 1e15;
  }
  const Bounds bounds = bounds_.of(id);
  if (!(bounds.least > -1e15 && bounds.greatest < 1e15)) return false;
  if (!is_float(value.dtype)) return value.dtype != DType::kBool;
  const Node* node = bounds_.maker(id);
  if (node == nullptr || value.dtype != DType::kFloat64) return false;
  if (node->op == "Cast") return !is_float(graph_[node->inputs[0]].dtype);
  if (node->op == "Add" || node->op == "Sub" || node->op == "Mul")
    return is_whole(node->inputs[0]) && is_whole(node->inputs[1]);
  return node->op == "Div" && is_one(node->inputs[1]) && is_whole(node->inputs[0]);
}

bool Importer::is_one(ValueId id) const {
  const std::optional<Tensor>& constant = graph_[id].constant;
  return constant && constant->num_elements() == 1 && constant->get(0) == 1;
}

static constexpr int kDeepestKey = 24;  // operators whose calls are compared

// Returns a text that is equal for numbers that are the same: their operators and the inputs of
// these, without operators that change nothing.
std::string Importer::number_key(ValueId id, int depth) {
  if (!id.valid()) return "-";
  const Value& value = graph_[id];
  if (value.constant && value.constant->num_elements() == 1 && !varies(id))
    return fmt::format("{}", value.constant->get(0));
  const Node* node = bounds_.maker(id);
  if (node != nullptr && node->op == "Shape") return fmt::format("Shape#{}", node->inputs[0].value);
  if (node == nullptr || element_count(value.shape) != 1 || depth == 0)
    return fmt::format("#{}", id.value);
  const std::string& op = node->op;
  const auto input = [&](size_t i) { return number_key(node->inputs[i], depth - 1); };
  const auto bounds = [&](size_t i) { return bounds_.of(node->inputs[i]); };
  if (only_moves(*node) || (op == "Div" && is_one(node->inputs[1]))) return input(0);
  for (const size_t i : {0, 1}) {
    if (node->inputs.size() != 2) break;
    const Bounds own = bounds(i), other = bounds(1 - i);
    if ((op == "Max" && own.least >= other.greatest) ||
        (op == "Min" && own.greatest <= other.least) ||
        ((op == "Add" || (op == "Sub" && i == 0)) && other.least == 0 && other.greatest == 0))
      return input(i);
  }
  if (op == "Where") {
    const size_t chosen = bounds_.chosen(*node);
    if (chosen > 0) return input(chosen);
  }
  if (op == "Clip" && node->inputs.size() == 3 && bounds(0).least >= bounds(1).greatest &&
      bounds(0).greatest <= bounds(2).least)
    return input(0);
  std::vector<std::string> inputs;
  for (size_t i = 0; i < node->inputs.size(); ++i) inputs.push_back(input(i));
  const auto output = std::ranges::find(node->outputs, id) - node->outputs.begin();
  return fmt::format("{}{}:{}({})", op, print(node->attributes), output, fmt::join(inputs, ","));
}

Result<ValueId> Importer::add_number(ValueId number, const std::string& name, bool own) {
  if (graph_[number].constant && !own) {
    const ValueId shape = add_integers(name + "/shape", {{1}});
    TRY_ASSIGN(const auto made, add("Reshape", {number, shape}, {}, name));
    return made[0];
  }
  const std::string extent = name + "/extent";
  ValueId length;
  if (is_given(extent)) {
    length = given_value(extent);
  } else {
    if (!reads_found()) return Error(computed_at_run_time(graph_, number, "an extent").message());
    const Bounds bounds = bounds_.of(number);
    const auto [symbol, fresh] =
        number_symbols_.try_emplace(number_key(number, kDeepestKey), extent);
    const auto known = options_.found->extents.find(symbol->second);
    const bool is_known = known != options_.found->extents.end();
    // An import of a part, or at given extents, need not know how long the extent may be.
    const bool any = options_.part != nullptr || is_known;
    const double most =
        any ? (is_known ? static_cast<double>(known->second) : 1) : std::max(bounds.greatest, 1.0);
    if (std::isinf(most))
      return Error(computed_at_run_time(graph_, number, "an extent").message(),
                   "; it may be any number: where the network clips it (Clip, Min), there is room "
                   "for the greatest");
    if (most > static_cast<double>(kMostSymbolExtent))
      return Error("an extent may be ", most, ", more than ", kMostSymbolExtent);
    const double least = std::clamp(bounds.least, 0.0, most);
    Node node{kExtent,
              "",
              {number},
              {add_value({extent, {}, {}, std::nullopt})},
              {{"least", static_cast<int64_t>(least)},
               {"most", static_cast<int64_t>(most)},
               {"symbol", symbol->second}}};
    length = node.outputs[0];
    TRY(add_between(std::move(node)));
  }
  TRY_ASSIGN(const auto made, add("Shape", {length}, {}, name));
  return made[0];
}

Result<ValueId> Importer::add_first_of(ValueId room,
                                       ValueId count,
                                       const std::string& symbol,
                                       const std::string& name) {
  const ValueId part = add_value({name, {}, {}, std::nullopt});
  TRY(add_part(room, part, 0, symbol, count));
  return part;
}

// Returns the value and index from which an element comes through nodes that only move it; `read`
// is the node's name for the value.
RunTimeNumbers::Element Importer::element_of(ValueId id,
                                             int64_t index,
                                             const std::string& read,
                                             const NameScope& scope) {
  RunTimeNumbers::Element element{read, index, graph_[id].constant.has_value()};
  while (!graph_[id].constant) {
    const Node* node = bounds_.maker(id);
    if (node == nullptr) break;
    const std::string& op = node->op;
    const DType from = node->inputs.empty() ? DType::kFloat32 : graph_[node->inputs[0]].dtype;
    size_t input = 0;
    if (op == "Concat" && graph_[id].shape.size() == 1) {
      while (index >= graph_[node->inputs[input]].shape[0])
        index -= graph_[node->inputs[input++]].shape[0];
    } else if (!is_alias(node->op) && !(op == "Cast" && keeps_integers(from, graph_[id].dtype))) {
      break;
    }
    id = node->inputs[input];
    const Entry* named = scope.find(graph_[id].name);
    if (named != nullptr && *named == Entry(id))
      element = {graph_[id].name, index, graph_[id].constant.has_value()};
  }
  return element;
}

// Returns the numbers that are computed at run time and say how long a node's results are; nullopt:
// the node has no such numbers.
std::optional<RunTimeNumbers> Importer::run_time_numbers(const onnx::NodeProto& proto,
                                                         std::span<const Entry> inputs,
                                                         const NameScope& scope) {
  const NumberInputs* row = number_inputs(operator_name(proto));
  // No list of the main graph's nodes names the nodes of the graphs within it.
  if (!reads_found() || options_.part != nullptr || row == nullptr || scope.depth > 0)
    return std::nullopt;
  const auto value = [&](int i) {
    const auto* id = static_cast<size_t>(i) < inputs.size()
                         ? std::get_if<ValueId>(&inputs[static_cast<size_t>(i)])
                         : nullptr;
    return id != nullptr ? *id : ValueId{};
  };
  RunTimeNumbers numbers{.op = proto.op_type(), .elements = {}};
  bool at_run_time = false;
  for (int i = row->first; i <= row->last; ++i) {
    const ValueId id = value(i);
    if (!id.valid()) continue;
    at_run_time |= !graph_[id].constant;
    for (int64_t e = 0; e < element_count(graph_[id].shape); ++e)
      numbers.elements.push_back(element_of(id, e, proto.input(i), scope));
  }
  const ValueId data = value(0);
  if (!at_run_time || numbers.elements.empty() || !data.valid()) return std::nullopt;
  numbers.rank = std::ssize(graph_[data].shape);
  const auto listed = [&](int i, size_t count, int64_t first, int64_t more) {
    std::vector<int64_t> list;
    const ValueId id = value(i);
    for (size_t n = 0; n < count; ++n)
      list.push_back(!id.valid()           ? first + more * static_cast<int64_t>(n)
                     : graph_[id].constant ? graph_[id].constant->get_int(static_cast<int64_t>(n))
                                           : 0);
    return list;
  };
  if (row->op == "Slice") {
    const size_t count = numbers.elements.size() / 2;
    for (const int i : {3, 4})
      if (value(i).valid() && !graph_[value(i)].constant) return std::nullopt;
    numbers.data_vary = varies(data);
    numbers.axes = listed(3, count, 0, 1);
    numbers.steps = listed(4, count, 1, 0);
  } else if (row->op == "Resize") {
    if (const onnx::AttributeProto* axes = written_attribute(proto, "axes"))
      numbers.axes.assign(axes->ints().begin(), axes->ints().end());
    for (size_t n = numbers.axes.size(); n < numbers.elements.size(); ++n)
      numbers.axes.push_back(static_cast<int64_t>(n));
  }
  for (int64_t& axis : numbers.axes)
    if (axis < 0) axis += numbers.rank;
  return numbers;
}

void Importer::note_varying(size_t first) {
  if (!reads_found()) return;
  varies_.resize(graph_.values.size());
  for (size_t n = first; n < graph_.nodes.size(); ++n) {
    const Node& node = graph_.nodes[n];
    const bool found = node.op == kFound || node.op == kExtent;
    const bool reads =
        std::ranges::any_of(node.inputs, [&](ValueId id) { return id.valid() && varies(id); });
    for (const ValueId id : node.outputs) varies_[id.value] = found || reads;
  }
}

// Whether the value `name` of a graph is a constant of the graph that is true.
static bool makes_true(const onnx::GraphProto& graph, const std::string& name) {
  const auto truth = [](const onnx::TensorProto& tensor) {
    ExternalData none;
    const auto read = tensor_from_proto(tensor, none, nullptr);
    return read.ok() && is_true(*read);
  };
  for (const onnx::TensorProto& tensor : graph.initializer())
    if (tensor.name() == name) return truth(tensor);
  for (const onnx::NodeProto& node : graph.node())
    if (node.op_type() == "Constant" && node.output(0) == name && node.attribute_size() == 1)
      return truth(node.attribute(0).t());
  return false;
}

// Returns the numbers of a Loop that is run round after round; nullopt: its rounds are known, and
// are imported one after the other. `is_unknown`: the import of the rounds was tried, and failed.
std::optional<RunTimeNumbers> Importer::run_time_loop(const onnx::NodeProto& proto,
                                                      std::span<const Entry> inputs,
                                                      const NameScope& scope,
                                                      bool is_unknown) {
  if (!reads_found() || options_.part != nullptr || scope.depth > 0 || proto.op_type() != "Loop" ||
      !is_standard(proto.domain()))
    return std::nullopt;
  const onnx::AttributeProto* attribute = written_attribute(proto, "body");
  const onnx::GraphProto* body = attribute == nullptr ? nullptr : &attribute->g();
  std::vector<ValueId> values;
  for (const Entry& entry : inputs) {
    if (is_sequence(entry)) return std::nullopt;
    values.push_back(std::get<ValueId>(entry));
  }
  values.resize(std::max<size_t>(values.size(), 2));
  if (body == nullptr || body->input_size() < 2 || body->output_size() < 1) return std::nullopt;
  RunTimeNumbers numbers{.op = "Loop", .elements = {}};
  bool varies = is_unknown;
  if (values[0].valid() && element_count(graph_[values[0]].shape) == 1) {
    const std::optional<Tensor>& trips = graph_[values[0]].constant;
    varies |= !trips || this->varies(values[0]);
    // A loop that only its condition ends has some trip count all the same.
    if (!trips || trips->get_int(0) <= kMostSymbolExtent)
      numbers.elements.push_back(element_of(values[0], 0, proto.input(0), scope));
  }
  if (values[1].valid() && !is_true(graph_[values[1]].constant)) {
    if (graph_[values[1]].constant) return std::nullopt;
    numbers.has_condition = varies = true;
  }
  if (!varies) return std::nullopt;
  // A loop without a condition before its rounds does not ask for a condition after each round.
  if (!values[1].valid()) return numbers;
  // `next` is the body's condition for the next round, before the Identity nodes that hand it on.
  std::string next = body->output(0).name();
  const auto maker = [&]() {
    return std::ranges::find_if(body->node(), [&](const onnx::NodeProto& node) {
      return node.output_size() > 0 && node.output(0) == next && node.op_type() == "Identity";
    });
  };
  for (auto node = maker(); node != body->node().end(); node = maker()) next = node->input(0);
  const Entry* outer = scope.find(next);
  const bool goes_on =
      next == body->input(1).name() ||
      (outer != nullptr && !is_sequence(*outer) && std::get<ValueId>(*outer).valid() &&
       is_true(graph_[std::get<ValueId>(*outer)].constant));
  numbers.counts_rounds = !goes_on && !makes_true(*body, next);
  return numbers;
}

static std::string print(const std::string& name, const RunTimeNumbers& numbers) {
  std::string text = fmt::format("{} {} axes {} steps {} rank {} {} {} {} {}",
                                 name,
                                 numbers.op,
                                 fmt::join(numbers.axes, ","),
                                 fmt::join(numbers.steps, ","),
                                 numbers.rank,
                                 numbers.data_vary,
                                 numbers.has_condition,
                                 numbers.counts_rounds,
                                 numbers.own_trips);
  for (const RunTimeNumbers::Element& element : numbers.elements)
    text += fmt::format(" {}:{}{}", element.value, element.index, element.known ? "" : "?");
  return text;
}

Result<Unit> Importer::add_expanded(const onnx::NodeProto& proto,
                                    const RunTimeNumbers& numbers,
                                    NameScope& scope) {
  const std::string name = first_output(proto);
  graph_.expanded[name] = numbers;
  TRY_ASSIGN(const NodeList* nodes,
             file_.nodes(print(name, numbers), [&] { return expand_node(proto, numbers); }));
  Body body;
  for (const onnx::NodeProto& node : *nodes) add_reads(node, body.reads);
  body.reads.insert(proto.output().begin(), proto.output().end());
  TRY_ASSIGN(const std::vector<int> order, node_order(*nodes));
  for (const int i : order) TRY(add_node((*nodes)[i], body, scope));
  return Unit{};
}

// Returns the main graph's nodes; those that need numbers of the run time are replaced.
Result<const NodeList*> Importer::main_nodes() {
  const NodeList& own = model_.graph().node();
  if (!reads_found() || options_.found->expanded.empty()) return &own;
  std::string key = "all";
  for (const auto& [name, numbers] : options_.found->expanded) key += "\n" + print(name, numbers);
  return file_.nodes(key, [&] { return expand_nodes(own, options_.found->expanded); });
}

static Outputs add_number(const ConstructCall& call) {
  TRY_ASSIGN(const ValueId number, call.tensor(0));
  const Result<ValueId> made = call.importer.add_number(
      number, call.scope.prefix + call.proto.output(0), call.integer("own", 0) != 0);
  if (!made.ok()) return call.error(made.error().message());
  return std::vector<Entry>{*made};
}

// Adds a kFound, the part of a tensor that is used.
static Outputs add_part(const ConstructCall& call) {
  TRY_ASSIGN(const ValueId room, call.tensor(0));
  TRY_ASSIGN(const ValueId count, call.tensor(1));
  const BoundAttribute symbol = find_attribute(call.proto, "symbol", call.scope);
  TRY_ASSIGN(const ValueId part,
             call.importer.add_first_of(
                 room, count, symbol.proto->s(), call.scope.prefix + call.proto.output(0)));
  return std::vector<Entry>{part};
}

static constexpr Construct kNumbers[] = {{kNumber, add_number}, {kPart, add_part}};

std::span<const Construct> numbers() { return kNumbers; }

}  // namespace pruner
