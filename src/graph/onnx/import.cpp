#include "graph/onnx/import.h"

#include <algorithm>
#include <climits>
#include <filesystem>
#include <fstream>
#include <memory>

#include "graph/evaluate.h"
#include "graph/found_values.h"
#include "graph/functions/body.h"
#include "graph/import_cache.h"
#include "graph/onnx/checks.h"
#include "graph/onnx/constructs.h"
#include "graph/onnx/importer.h"
#include "graph/onnx/model_functions.h"
#include "graph/onnx/node_numbers.h"
#include "graph/onnx/node_order.h"
#include "graph/onnx/tensor_proto.h"
#include "graph/onnx/upgrade.h"
#include "support/file.h"

namespace pruner {

static constexpr int kDeepest = 200;                 // graphs and calls within each other
static constexpr int64_t kMostUnfolded = 1'000'000;  // nodes, and rounds of loops
static constexpr int64_t kSmall = 4096;              // elements of what is evaluated at once

BoundAttribute bound(const onnx::AttributeProto& attribute, const NameScope& scope) {
  if (attribute.ref_attr_name().empty()) return {&attribute, &scope};
  const auto it = scope.frame->attributes.find(attribute.ref_attr_name());
  return it == scope.frame->attributes.end() ? BoundAttribute{} : it->second;
}

BoundAttribute find_attribute(const onnx::NodeProto& node,
                              const std::string& name,
                              const NameScope& scope) {
  const onnx::AttributeProto* written = written_attribute(node, name);
  return written == nullptr ? BoundAttribute{} : bound(*written, scope);
}

static Result<Unit> bind_name(const std::string& name, Entry entry, NameScope& scope) {
  if (scope.names.try_emplace(name, std::move(entry)).second) return Unit{};
  return Error("value \"", name, "\" is made twice");
}

static std::string name_of(const onnx::NodeProto& proto, const NameScope& scope) {
  return scope.prefix + inner_name(proto);
}

static std::string node_text(const onnx::NodeProto& proto, const NameScope& scope) {
  if (!proto.name().empty()) return "node \"" + scope.prefix + proto.name() + "\"";
  return "node " + proto.op_type() + " " + label(proto);
}

ValueId Importer::add_constant(const std::string& name, Tensor tensor) {
  return add_value({name, tensor.dtype(), tensor.shape(), tensor});
}

ValueId Importer::add_integers(const std::string& name, std::span<const int64_t> values) {
  Tensor tensor(DType::kInt64, {std::ssize(values)});
  std::ranges::copy(values, tensor.values<int64_t>().begin());
  return add_constant(name, std::move(tensor));
}

ValueId Importer::add_integer(const std::string& name, int64_t value) {
  Tensor tensor(DType::kInt64, {});
  tensor.set_int(0, value);
  return add_constant(name, std::move(tensor));
}

ValueId Importer::add_value(Value value) {
  graph_.values.push_back(std::move(value));
  return ValueId{static_cast<int32_t>(graph_.values.size()) - 1};
}

Result<ValueId> Importer::define(const std::string& name, NameScope& scope) {
  const ValueId id{static_cast<int32_t>(graph_.values.size())};
  // An optional output that is left out still needs a place, which has no name.
  if (!name.empty()) TRY(bind_name(name, id, scope));
  graph_.values.push_back({name.empty() ? "" : scope.prefix + name, {}, {}, std::nullopt});
  return id;
}

Result<Unit> Importer::check_unfolded(int64_t more) const {
  if (more <= kMostUnfolded - unfolded_) return Unit{};
  return Error("loops and functions unfold to more than ", kMostUnfolded, " nodes");
}

Result<Unit> Importer::count_unfolded() {
  TRY(check_unfolded(1));
  ++unfolded_;
  return Unit{};
}

Result<Unit> Importer::add_initializer(const onnx::TensorProto& proto,
                                       bool of_main_graph,
                                       NameScope& scope) {
  TRY_ASSIGN(const Tensor tensor, file_.tensor_of(proto, of_main_graph));
  if (graph_.folded != nullptr) graph_.folded->keep(tensor);
  TRY_ASSIGN(const ValueId id, define(proto.name(), scope));
  graph_[id] = {scope.prefix + proto.name(), tensor.dtype(), tensor.shape(), tensor};
  return Unit{};
}

Result<Unit> Importer::add_initializers(const onnx::GraphProto& graph, NameScope& scope) {
  if (graph.sparse_initializer_size() > 0) return Error("sparse initializers are not supported");
  // A function's graph is not of the model's message.
  const bool is_main = &graph == &model_.graph();
  for (const onnx::TensorProto& proto : graph.initializer()) {
    TRY(add_initializer(proto, is_main, scope));
  }
  return Unit{};
}

Result<const Importer::Body*> Importer::body_of(const NodeList& nodes,
                                                std::span<const std::string> outputs) {
  const auto [it, fresh] = bodies_.try_emplace(&nodes);
  Body& body = it->second;
  if (!fresh) return &body;
  TRY_ASSIGN(body.order, node_order(nodes));
  for (const onnx::NodeProto& node : nodes) add_reads(node, body.reads);
  body.outputs.insert(outputs.begin(), outputs.end());
  body.reads.insert(outputs.begin(), outputs.end());
  return &body;
}

Result<Unit> Importer::add_nodes(const NodeList& nodes,
                                 const Body& body,
                                 NameScope& scope,
                                 const std::set<std::string>* needed) {
  if (scope.depth > kDeepest)
    return Error("graphs and functions lie more than ", kDeepest, " deep in each other");
  std::vector<int> order = body.order;
  if (options_.part != nullptr) {
    const std::set<std::string>& outputs = needed != nullptr ? *needed : body.outputs;
    order = needed_nodes(nodes, order, outputs, scope.prefix, scope.read);
  }
  for (const int i : order) TRY(add_node(nodes[i], body, scope));
  return Unit{};
}

Result<std::vector<Entry>> Importer::inputs_of(const onnx::NodeProto& proto, NameScope& scope) {
  std::vector<Entry> inputs;
  for (const std::string& name : proto.input()) {
    const Entry* entry = name.empty() ? nullptr : find(name, scope);
    if (!name.empty() && entry == nullptr) {
      return Error(node_text(proto, scope),
                   ": input \"",
                   name,
                   "\" is made by no node, input or initializer");
    }
    inputs.push_back(entry == nullptr ? Entry(ValueId{}) : *entry);
  }
  return inputs;
}

Result<Unit> Importer::add_node(const onnx::NodeProto& proto, const Body& body, NameScope& scope) {
  if (scope.depth > 0) TRY(count_unfolded());
  std::vector<Entry> inputs;
  // Nobody asks for the condition of an If whose branch is known.
  const bool decides = proto.op_type() == "If";
  if (!decides ||
      (!known_branch(name_of(proto, scope)) && !is_given(condition_of(name_of(proto, scope))))) {
    TRY_ASSIGN(inputs, inputs_of(proto, scope));
  }
  const ModelFunction* function = file_.functions().find(proto);
  // An Identity of a sequence is no node: like an Optional, the Identity hands on its input.
  const bool handed_on = proto.op_type() == "Identity" && !inputs.empty() && is_sequence(inputs[0]);
  const Construct* construct = find_construct(handed_on ? "Optional" : operator_name(proto));
  const auto expand = [&](const RunTimeNumbers& numbers) -> Result<Unit> {
    const Result<Unit> added = add_expanded(proto, numbers, scope);
    return added.ok() ? added : Error(node_text(proto, scope), ": ", added.error().message());
  };
  if (const auto numbers = run_time_numbers(proto, inputs, scope)) return expand(*numbers);
  if (const auto loop = run_time_loop(proto, inputs, scope, false)) return expand(*loop);
  if (function == nullptr && construct == nullptr) return add_operator(proto, body, inputs, scope);
  const Result<std::vector<Entry>> outputs =
      function != nullptr ? call_function(proto, *function, inputs, scope)
                          : construct->add({*this, proto, scope, name_of(proto, scope), inputs});
  if (!outputs.ok()) {
    const auto loop = run_time_loop(proto, inputs, scope, true);
    return loop ? expand(*loop) : outputs.error();
  }
  for (int i = 0; i < proto.output_size(); ++i) {
    if (proto.output(i).empty() || is_given(scope.prefix + proto.output(i))) continue;
    if (static_cast<size_t>(i) >= outputs->size())
      return Error(node_text(proto, scope), " has only ", outputs->size(), " outputs");
    TRY(bind_name(proto.output(i), (*outputs)[static_cast<size_t>(i)], scope));
  }
  return Unit{};
}

Result<Unit> Importer::add_operator(const onnx::NodeProto& proto,
                                    const Body& body,
                                    std::span<const Entry> inputs,
                                    NameScope& scope) {
  const auto error = [&](const auto&... why) {
    return Error(node_text(proto, scope), ": ", why...);
  };
  const std::string name = proto.name().empty() ? "" : scope.prefix + proto.name();
  Node node{operator_name(proto), name, {}, {}, {}};
  for (const Entry& entry : inputs) {
    if (is_sequence(entry)) return error(proto.op_type(), " of a sequence is not supported");
    node.inputs.push_back(std::get<ValueId>(entry));
  }
  // Outputs at the end that nobody reads are left out: the operator's row need not know them.
  int outputs = proto.output_size();
  const GraphOp* op = find_graph_op(node.op);
  const bool all = op != nullptr && op->is(kCountsOutputs);
  while (!all && outputs > 1 && !body.reads.contains(proto.output(outputs - 1))) --outputs;
  if (outputs == 0) return error("makes nothing");
  for (int i = 0; i < outputs; ++i) {
    // The given value keeps its name, so the output that is computed beside it gets no name.
    const bool given = is_given(scope.prefix + proto.output(i));
    TRY_ASSIGN(const ValueId id, define(given ? "" : proto.output(i), scope));
    node.outputs.push_back(id);
  }
  Result<Attributes> attributes = attributes_of(proto, scope);
  if (!attributes.ok()) return error(attributes.error().message());
  node.attributes = *std::move(attributes);
  return infer(std::move(node), scope.frame->opset);
}

Result<std::vector<ValueId>> Importer::add(const std::string& op,
                                           std::vector<ValueId> inputs,
                                           Attributes attributes,
                                           const std::string& name,
                                           size_t outputs) {
  TRY(count_unfolded());
  Node node{op, name, std::move(inputs), {}, std::move(attributes)};
  for (size_t i = 0; i < outputs; ++i) {
    const std::string suffix = i == 0 ? "" : ":" + std::to_string(i);
    node.outputs.push_back(add_value({name + suffix, {}, {}, std::nullopt}));
  }
  const std::vector<ValueId> made = node.outputs;
  TRY(append(std::move(node), kNewestOpset));
  return made;
}

// Adds a node in the newest form, which may be several nodes.
Result<Unit> Importer::infer(Node old, int64_t opset) {
  const std::string name = node_label(graph_, old);
  Result<std::vector<Node>> nodes = upgrade_node(graph_, std::move(old), opset);
  if (!nodes.ok()) return Error(name, ": ", nodes.error().message());
  for (Node& node : *nodes) {
    TRY(append(std::move(node), opset));
  }
  return Unit{};
}

Result<Unit> Importer::append(Node node, int64_t opset) {
  const std::optional<FirstOfAll> wanted = find_all(node);
  const size_t begin = graph_.nodes.size();
  const Node read{node.op, node.name, node.inputs, node.outputs, {}};
  if (const Result<Unit> made = append_call(graph_, std::move(node), opset); !made.ok()) {
    // Extents that do not fit may belong to values of which only a part is used.
    const std::optional<std::string> maker = finder_of(graph_, read);
    return maker ? reads_found_values(graph_, read, *maker) : made.error();
  }
  made_by_.resize(graph_.values.size(), -1);
  for (size_t n = begin; n < graph_.nodes.size(); ++n) {
    fold(n);
    if (reads_found()) TRY(add_found(n));
  }
  if (wanted) TRY(add_first(read.outputs, *wanted, begin));
  note_varying(begin);
  return Unit{};
}

// Evaluates small values that follow from constants at once, even if large values lie between.
// Conditions, trip counts and shapes are read while the model is read.
void Importer::fold(size_t number) {
  const Node& node = graph_.nodes[number];
  if (is_of_pipeline(node)) return;
  const bool known = std::ranges::all_of(
      node.outputs, [&](ValueId id) { return graph_[id].constant.has_value(); });
  const bool constant = std::ranges::all_of(node.inputs, [&](ValueId id) {
    return !id.valid() || graph_[id].constant || made_by_[id.value] >= 0;
  });
  if (known || !constant) return;
  for (const ValueId id : node.outputs) made_by_[id.value] = static_cast<int>(number);
  const bool small = std::ranges::all_of(
      node.outputs, [&](ValueId id) { return element_count(graph_[id].shape) <= kSmall; });
  if (small) evaluate(node.outputs[0]);
}

void Importer::evaluate(ValueId id) {
  if (!id.valid() || graph_[id].constant) return;
  const Node& node = graph_.nodes[static_cast<size_t>(made_by_[id.value])];
  for (const ValueId input : node.inputs) evaluate(input);
  std::vector<Tensor> tensors = evaluate_constant_node(graph_, node);
  for (size_t i = 0; i < tensors.size(); ++i) {
    graph_[node.outputs[i]].constant = std::move(tensors[i]);
  }
}

Result<std::vector<Entry>> Importer::outputs_of(std::span<const std::string> names,
                                                const NameScope& scope) const {
  std::vector<Entry> outputs;
  for (const std::string& name : names) {
    const Entry* entry = scope.find(name);
    if (entry == nullptr) return Error("output \"", name, "\" is made by no node");
    outputs.push_back(*entry);
  }
  return outputs;
}

Result<std::vector<Entry>> Importer::add_body(const onnx::GraphProto& graph,
                                              const NameScope& outer,
                                              const std::string& prefix,
                                              std::vector<Entry> inputs,
                                              const std::set<std::string>* needed) {
  TRY(count_unfolded());
  NameScope scope{outer.frame, &outer, prefix, outer.depth + 1};
  for (size_t i = 0; i < inputs.size(); ++i) {
    TRY(bind_name(graph.input(static_cast<int>(i)).name(), std::move(inputs[i]), scope));
  }
  const std::vector<std::string> outputs = names_in(graph.output());
  TRY_ASSIGN(const Body* body, body_of(graph.node(), outputs));
  TRY(add_initializers(graph, scope));
  TRY(add_nodes(graph.node(), *body, scope, needed));
  for (const std::string& name : outputs) {
    find(name, scope);  // an output may be what the part is given
    if (needed != nullptr && !needed->contains(name)) scope.names.try_emplace(name, ValueId{});
  }
  return outputs_of(outputs, scope);
}

Result<std::vector<Entry>> Importer::call_function(const onnx::NodeProto& proto,
                                                   const ModelFunction& function,
                                                   std::vector<Entry> inputs,
                                                   const NameScope& scope) {
  const onnx::FunctionProto& callee = *function.proto;
  const auto error = [&](const auto&... why) {
    return Error(node_text(proto, scope), ": function ", callee.name(), " ", why...);
  };
  const Result<int64_t> opset = standard_opset(callee.opset_import(), scope.frame->opset);
  if (!opset.ok()) return error(opset.error().message());
  CallFrame frame{*opset, {}};
  for (const onnx::AttributeProto& fallback : function.defaults) {
    frame.attributes[fallback.name()] = {&fallback, nullptr};
  }
  for (const onnx::AttributeProto& attribute : proto.attribute()) {
    const bool declared = frame.attributes.contains(attribute.name()) ||
                          std::ranges::count(callee.attribute(), attribute.name()) > 0;
    if (!declared) return error("has no attribute \"", attribute.name(), "\"");
    const BoundAttribute given = bound(attribute, scope);
    if (given.proto != nullptr) frame.attributes[attribute.name()] = given;
  }
  NameScope inner{&frame, nullptr, name_of(proto, scope) + "/", scope.depth + 1};
  inputs.resize(std::max(inputs.size(), static_cast<size_t>(callee.input_size())));
  if (inputs.size() > static_cast<size_t>(callee.input_size()))
    return error("takes ", callee.input_size(), " inputs, found ", inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    TRY(bind_name(callee.input(static_cast<int>(i)), std::move(inputs[i]), inner));
  }
  const std::vector<std::string> outputs(callee.output().begin(), callee.output().end());
  TRY_ASSIGN(const Body* body, body_of(callee.node(), outputs));
  TRY(add_nodes(callee.node(), *body, inner));
  Result<std::vector<Entry>> made = outputs_of(outputs, inner);
  if (!made.ok()) return error("is incomplete: ", made.error().message());
  return made;
}

Result<Unit> Importer::add_outputs(const NameScope& scope) {
  for (const auto& output : model_.graph().output()) {
    const Entry* entry = scope.find(output.name());
    if (entry == nullptr) return Error("output \"", output.name(), "\" is made by no node");
    if (is_sequence(*entry))
      return Error("output \"", output.name(), "\" is a sequence; only tensors can be outputs");
    ValueId id = std::get<ValueId>(*entry);
    if (!id.valid()) return Error("output \"", output.name(), "\" is an optional without a value");
    // A value that was made in a body has another name in the body.
    if (graph_[id].name != output.name()) {
      TRY_ASSIGN(const std::vector<ValueId> named, add("Identity", {id}, {}, output.name()));
      id = named[0];
    }
    graph_.outputs.push_back(id);
  }
  if (graph_.outputs.empty()) return Error("the graph has no outputs");
  return Unit{};
}

Result<Graph> Importer::run() {
  const onnx::GraphProto& graph = model_.graph();
  graph_.name = graph.name();
  graph_.loops_over_steps = options_.loops_over_steps;
  if (options_.part != nullptr) return run_part();
  graph_.never_run = reads_found();
  TRY_ASSIGN(const int64_t opset, check_versions(model_));
  // First of all, so that the error lists every operator that is missing.
  TRY(check_operators(graph));
  const CallFrame frame{opset, {}};
  NameScope scope{&frame, nullptr, "", 0};
  TRY(add_initializers(graph, scope));
  TRY(add_inputs(scope));
  const std::vector<std::string> outputs = names_in(graph.output());
  TRY_ASSIGN(const NodeList* nodes, main_nodes());
  TRY_ASSIGN(const Body* body, body_of(*nodes, outputs));
  TRY(add_nodes(*nodes, *body, scope));
  TRY(add_outputs(scope));
  TRY(check_computes());
  if (!reshaped_) warn_of_declared_types(model_, graph_, scope);
  return std::move(graph_);
}

static Result<Unit> check_size(size_t bytes) {
  if (bytes == 0) return Error("the file is empty, expected an ONNX model");
  if (bytes <= INT_MAX) return Unit{};
  return Error(
      "the file has more than 2 GB, the most that protobuf reads: save the model with external "
      "data (onnx.save_model(..., save_as_external_data=True))");
}

static Result<std::shared_ptr<ParsedModel>> made_of(std::shared_ptr<const onnx::ModelProto> model,
                                                    bool parsed,
                                                    ExternalData files) {
  if (!parsed) return Error("this is no ONNX model, or a part of one: protobuf cannot parse it");
  return ParsedModel::of(std::move(model), std::move(files));
}

Result<Graph> import_onnx_bytes(std::string_view bytes,
                                const NetworkOptions& options,
                                ExternalData files) {
  TRY(check_size(bytes.size()));
  auto proto = std::make_shared<onnx::ModelProto>();
  const bool parsed = proto->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  TRY_ASSIGN(const auto model, made_of(std::move(proto), parsed, std::move(files)));
  return Importer(*model, options).run();
}

// Parses a piece at a time: the bytes are in memory once, as the message's.
static Result<std::shared_ptr<ParsedModel>> parse_file(const std::string& path, bool number) {
  TRY(MappedFile::open(path));  // the error of what cannot be read or is no file
  std::error_code ignored;
  TRY(check_size(std::filesystem::file_size(path, ignored)));
  std::ifstream in(path, std::ios::binary);
  auto proto = std::make_shared<onnx::ModelProto>();
  const bool parsed = proto->ParseFromIstream(&in);
  if (parsed && number && proto->has_graph()) number_nodes(*proto);
  return made_of(std::move(proto), parsed, ExternalData::beside(path));
}

// The file, which is parsed once where imports share a cache.
static Result<std::shared_ptr<ParsedModel>> open_model(const std::string& path,
                                                       const NetworkOptions& options) {
  if (options.cache == nullptr) return parse_file(path, options.number_nodes);
  ParsedModels& models = options.cache->models;
  const std::lock_guard lock(models.mutex);
  std::shared_ptr<ParsedModel>& known = models.by_file[{path, options.number_nodes}];
  if (known == nullptr) {
    TRY_ASSIGN(known, parse_file(path, options.number_nodes));
  }
  return known;
}

template <typename T>
static Result<T> read_file_as(const std::string& path,
                              const NetworkOptions& options,
                              Result<T> (Importer::*read)()) {
  const auto make = [&]() -> Result<T> {
    TRY_ASSIGN(const auto model, open_model(path, options));
    return (Importer(*model, options).*read)();
  };
  Result<T> made = make();
  if (!made.ok()) return Error(path, ": ", made.error().message());
  return made;
}

Result<Graph> import_onnx(const std::string& path, const NetworkOptions& options) {
  return read_file_as(path, options, &Importer::run);
}

Result<NodeSurvey> survey_onnx(const std::string& path, const NetworkOptions& options) {
  return read_file_as(path, options, &Importer::survey);
}

}  // namespace pruner
