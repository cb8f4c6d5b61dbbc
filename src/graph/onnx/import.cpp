// Reads an .onnx file: the file's nodes in the file's words, then sorted, brought to the newest
// form one by one, and inferred as they come, so that shapes computed by nodes are known in time.
#include "graph/onnx/import.h"

#include <algorithm>
#include <climits>
#include <set>

#include "graph/functions/body.h"
#include "graph/onnx/tensor_proto.h"
#include "graph/onnx/upgrade.h"
#include "graph/partition.h"
#include "graph/rewriter.h"
#include "support/file.h"

namespace pruner {
namespace {

constexpr int64_t kMostExtent = int64_t{1} << 31;  // of an input's dimension

class Importer {
 public:
  Importer(const onnx::ModelProto& model, const NetworkOptions& options)
      : model_(model), proto_(model.graph()), options_(options) {}
  Result<Graph> run();

 private:
  Result<Unit> check_operators() const;
  Result<Unit> check_input_shapes() const;
  Result<Unit> add_initializers();
  Result<Unit> add_inputs();
  Result<Unit> add_nodes();
  Result<Unit> infer();
  Result<Unit> add_outputs();
  Result<std::vector<int64_t>> input_shape(const onnx::ValueInfoProto& input) const;
  Result<Node> node_of(const onnx::NodeProto& proto);
  Result<ValueId> define(const std::string& name);
  int64_t opset() const;

  const onnx::ModelProto& model_;
  const onnx::GraphProto& proto_;
  const NetworkOptions& options_;
  Graph graph_;
  std::map<std::string, ValueId> values_;
  std::set<std::string> read_;  // names of values that a node or the caller reads
};

bool is_standard(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

// "Conv", "com.microsoft::FusedMatMul".
std::string operator_name(const onnx::NodeProto& node) {
  return is_standard(node.domain()) ? node.op_type() : node.domain() + "::" + node.op_type();
}

// ONNX: a model that imports nothing means version 1.
int64_t Importer::opset() const {
  for (const auto& import : model_.opset_import()) {
    if (is_standard(import.domain())) return import.version();
  }
  return 1;
}

std::string label(const onnx::NodeProto& node) {
  if (!node.name().empty()) return "\"" + node.name() + "\"";
  return "that makes \"" + (node.output_size() > 0 ? node.output(0) : "") + "\"";
}

// Every operator that has no row, each with its nodes.
Result<Unit> Importer::check_operators() const {
  std::map<std::string, std::vector<std::string>> unknown;
  for (const onnx::NodeProto& node : proto_.node()) {
    const std::string op = operator_name(node);
    if (find_graph_op(op) != nullptr || find_function(op) != nullptr) continue;
    unknown[op].push_back(label(node));
  }
  if (unknown.empty()) return Unit{};
  std::string list;
  for (const auto& [op, nodes] : unknown) {
    list += (list.empty() ? "" : "; ") + op + " (node " + nodes[0];
    if (nodes.size() > 1) list += " and " + std::to_string(nodes.size() - 1) + " more";
    list += ")";
  }
  const char* subject = unknown.size() == 1 ? " operator is" : " operators are";
  return Error(unknown.size(), subject, " not supported: ", list);
}

Result<ValueId> Importer::define(const std::string& name) {
  const auto [it, fresh] =
      values_.try_emplace(name, ValueId{static_cast<int32_t>(graph_.values.size())});
  if (!fresh) return Error("value \"", name, "\" is made twice");
  graph_.values.push_back({name, {}, {}, std::nullopt});
  return it->second;
}

Result<Unit> Importer::add_initializers() {
  if (proto_.sparse_initializer_size() > 0) return Error("sparse initializers are not supported");
  for (const onnx::TensorProto& proto : proto_.initializer()) {
    TRY_ASSIGN(Tensor tensor, tensor_from_proto(proto));
    TRY_ASSIGN(const ValueId id, define(proto.name()));
    graph_[id] = {proto.name(), tensor.dtype(), tensor.shape(), tensor};
  }
  return Unit{};
}

Result<Unit> Importer::check_input_shapes() const {
  for (const auto& [name, shape] : options_.input_shapes) {
    std::string names;
    bool found = false;
    for (const auto& input : proto_.input()) {
      found |= input.name() == name;
      if (!values_.contains(input.name()))
        names += (names.empty() ? "\"" : ", \"") + input.name() + "\"";
    }
    if (!found) return Error("--input-shapes names \"", name, "\"; the inputs are ", names);
  }
  return Unit{};
}

Result<std::vector<int64_t>> Importer::input_shape(const onnx::ValueInfoProto& input) const {
  const auto given = options_.input_shapes.find(input.name());
  const onnx::TypeProto_Tensor& type = input.type().tensor_type();
  std::vector<int64_t> shape;
  std::string text, example;
  bool open = !type.has_shape();
  for (const auto& dim : type.shape().dim()) {
    const bool known = dim.has_dim_value() && dim.dim_value() > 0;
    open |= !known;
    shape.push_back(known ? dim.dim_value() : 1);
    const std::string name = dim.dim_param().empty() ? "?" : dim.dim_param();
    text += (text.empty() ? "" : "x") + (known ? std::to_string(dim.dim_value()) : name);
    example += (example.empty() ? "" : "x") + std::to_string(shape.back());
  }
  if (given != options_.input_shapes.end()) {
    if (type.has_shape() && given->second.size() != shape.size()) {
      return Error("--input-shapes gives \"",
                   input.name(),
                   "\" ",
                   given->second.size(),
                   " dimensions, the file ",
                   shape.size(),
                   " (",
                   text,
                   ")");
    }
    shape = given->second;
  } else if (open) {
    return Error("input \"",
                 input.name(),
                 "\" has the dynamic shape ",
                 type.has_shape() ? text : "?",
                 "; say what it is with --input-shapes ",
                 input.name(),
                 ":",
                 example.empty() ? "1x3x224x224" : example);
  }
  for (const int64_t extent : shape) {
    if (extent < 1 || extent > kMostExtent) {
      return Error("input \"", input.name(), "\" has the extent ", extent, ", expected 1 or more");
    }
  }
  return shape;
}

Result<Unit> Importer::add_inputs() {
  TRY(check_input_shapes());
  for (const onnx::ValueInfoProto& input : proto_.input()) {
    if (values_.contains(input.name())) continue;  // up to IR 3 the weights are listed too
    if (!input.type().has_tensor_type()) return Error("input \"", input.name(), "\" is no tensor");
    const int type = input.type().tensor_type().elem_type();
    if (!is_native_onnx_type(type)) {
      std::string ours;
      for (const DTypeRow& row : kDTypes)
        ours += (ours.empty() ? "" : ", ") + onnx_type_name(row.onnx);
      return Error("input \"",
                   input.name(),
                   "\" has the element type ",
                   onnx_type_name(type),
                   "; supported are ",
                   ours);
    }
    TRY_ASSIGN(const std::vector<int64_t> shape, input_shape(input));
    TRY_ASSIGN(const ValueId id, define(input.name()));
    graph_[id].dtype = *dtype_from_onnx(type);
    graph_[id].shape = shape;
    graph_.inputs.push_back(id);
  }
  return Unit{};
}

// Nothing for kinds that no row of ours reads.
Result<std::optional<Attribute>> attribute_of(const onnx::AttributeProto& proto) {
  using onnx::AttributeProto;
  switch (proto.type()) {
    case AttributeProto::INT: return {{proto.i()}};
    case AttributeProto::FLOAT: return {{static_cast<double>(proto.f())}};
    case AttributeProto::STRING: return {{proto.s()}};
    case AttributeProto::INTS:
      return {{std::vector<int64_t>(proto.ints().begin(), proto.ints().end())}};
    case AttributeProto::FLOATS:
      return {{std::vector<double>(proto.floats().begin(), proto.floats().end())}};
    case AttributeProto::TENSOR: {
      TRY_ASSIGN(Tensor tensor, tensor_from_proto(proto.t()));
      return {{std::move(tensor)}};
    }
    default: return {std::nullopt};
  }
}

// Our form of Cast's target: the name of the type that holds it.
Result<Unit> name_cast_target(Node& node) {
  const auto it = node.attributes.find("to");
  if (it == node.attributes.end()) return Unit{};
  int type = onnx::TensorProto::UNDEFINED;
  if (const auto* number = std::get_if<int64_t>(&it->second)) type = static_cast<int>(*number);
  if (const auto* name = std::get_if<std::string>(&it->second)) {  // opset 5 and before
    onnx::TensorProto_DataType parsed;
    if (onnx::TensorProto_DataType_Parse(*name, &parsed)) type = parsed;
  }
  const std::optional<DType> dtype = dtype_from_onnx(type);
  if (!is_native_onnx_type(type) && type != onnx::TensorProto::DOUBLE) {
    return Error("a cast to ", onnx_type_name(type), " is not supported");
  }
  it->second = std::string(dtype_name(*dtype));
  return Unit{};
}

Result<Node> Importer::node_of(const onnx::NodeProto& proto) {
  Node node{operator_name(proto), proto.name(), {}, {}, {}};
  for (const std::string& name : proto.input()) {
    const auto it = values_.find(name);
    if (!name.empty() && it == values_.end()) {
      return Error("input \"", name, "\" is made by no node, input or initializer");
    }
    node.inputs.push_back(name.empty() ? ValueId{} : it->second);
  }
  // Outputs at the end that nobody reads are left out: a row need not know them.
  int outputs = proto.output_size();
  while (outputs > 1 && !read_.contains(proto.output(outputs - 1))) --outputs;
  if (outputs == 0) return Error("makes nothing");
  for (int i = 0; i < outputs; ++i) node.outputs.push_back(values_[proto.output(i)]);
  for (const onnx::AttributeProto& attribute : proto.attribute()) {
    TRY_ASSIGN(std::optional<Attribute> value, attribute_of(attribute));
    if (value) node.attributes[attribute.name()] = *std::move(value);
  }
  if (node.op == "Cast") TRY(name_cast_target(node));
  return node;
}

Result<Unit> Importer::add_nodes() {
  for (const onnx::NodeProto& node : proto_.node()) {
    for (int i = 0; i < node.output_size(); ++i) {
      // An optional output that is left out still needs a place.
      const std::string& name = node.output(i);
      if (name.empty() && values_.contains(name)) continue;
      TRY(define(name));
    }
    read_.insert(node.input().begin(), node.input().end());
  }
  read_.erase("");
  for (const auto& output : proto_.output()) read_.insert(output.name());
  for (const onnx::NodeProto& proto : proto_.node()) {
    Result<Node> node = node_of(proto);
    if (!node.ok()) return Error("node ", label(proto), ": ", node.error().message());
    graph_.nodes.push_back(*std::move(node));
  }
  return sort_nodes(graph_);
}

Result<Unit> Importer::infer() {
  for (Node& old : std::exchange(graph_.nodes, {})) {
    const std::string name = node_label(graph_, old);
    Result<std::vector<Node>> nodes = upgrade_node(graph_, std::move(old), opset());
    if (!nodes.ok()) return Error(name, ": ", nodes.error().message());
    for (Node& node : *nodes) {
      TRY(append_call(graph_, std::move(node), opset()));
    }
  }
  return Unit{};
}

Result<Unit> Importer::add_outputs() {
  for (const auto& output : proto_.output()) {
    const auto it = values_.find(output.name());
    if (it == values_.end()) return Error("output \"", output.name(), "\" is made by no node");
    graph_.outputs.push_back(it->second);
  }
  if (graph_.outputs.empty()) return Error("the graph has no outputs");
  return Unit{};
}

Result<Graph> Importer::run() {
  graph_.name = proto_.name();
  // First of all, so that the error lists every operator that is missing.
  TRY(check_operators());
  TRY(add_initializers());
  TRY(add_inputs());
  TRY(add_nodes());
  TRY(infer());
  TRY(add_outputs());
  return std::move(graph_);
}

}  // namespace

Result<Graph> import_onnx_bytes(std::string_view bytes, const NetworkOptions& options) {
  if (bytes.empty()) return Error("the file is empty, expected an ONNX model");
  if (bytes.size() > INT_MAX) {
    return Error("the file has more than 2 GB, the most that protobuf reads");
  }
  onnx::ModelProto model;
  if (!model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Error("this is no ONNX model, or a part of one: protobuf cannot parse it");
  }
  if (!model.has_graph()) return Error("this is no ONNX model: it holds no graph");
  return Importer(model, options).run();
}

Result<Graph> import_onnx(const std::string& path, const NetworkOptions& options) {
  TRY_ASSIGN(const std::string bytes, read_file(path));
  Result<Graph> graph = import_onnx_bytes(bytes, options);
  if (!graph.ok()) return Error(path, ": ", graph.error().message());
  return graph;
}

}  // namespace pruner
