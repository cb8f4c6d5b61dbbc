// Writes a graph as an ONNX file of opset 13 (or the first that has all its operators), IR 8.
#include <algorithm>
#include <climits>
#include <set>

#include "graph/onnx/tensor_proto.h"
#include "graph/ops/op.h"
#include "graph/partition.h"
#include "support/file.h"
#include "support/match.h"

namespace pruner {
namespace {

constexpr int64_t kOldestOpset = 13, kIrVersion = 8;
// The first that has every element type of ours.
constexpr int64_t kOpsetOfCodes = 25;

void set_attribute(onnx::NodeProto& node, const std::string& name, const Attribute& attribute) {
  onnx::AttributeProto& proto = *node.add_attribute();
  proto.set_name(name);
  match(
      attribute,
      [&](int64_t v) {
        proto.set_type(onnx::AttributeProto::INT);
        proto.set_i(v);
      },
      [&](double v) {
        proto.set_type(onnx::AttributeProto::FLOAT);
        proto.set_f(static_cast<float>(v));
      },
      [&](const std::string& v) {
        proto.set_type(onnx::AttributeProto::STRING);
        proto.set_s(v);
      },
      [&](const std::vector<int64_t>& v) {
        proto.set_type(onnx::AttributeProto::INTS);
        proto.mutable_ints()->Add(v.begin(), v.end());
      },
      [&](const std::vector<double>& v) {
        proto.set_type(onnx::AttributeProto::FLOATS);
        for (const double x : v) proto.add_floats(static_cast<float>(x));
      },
      [&](const Tensor& v) {
        proto.set_type(onnx::AttributeProto::TENSOR);
        *proto.mutable_t() = tensor_to_proto("", v);
      },
      [&](const std::vector<std::string>& v) {
        proto.set_type(onnx::AttributeProto::STRINGS);
        for (const std::string& text : v) proto.add_strings(text);
      });
}

void set_type(onnx::ValueInfoProto& proto, const std::string& name, const Value& value) {
  proto.set_name(name);
  auto& type = *proto.mutable_type()->mutable_tensor_type();
  type.set_elem_type(dtype_to_onnx(value.dtype));
  type.mutable_shape();
  for (const int64_t extent : value.shape) type.mutable_shape()->add_dim()->set_dim_value(extent);
}

// Returns unique names for the file: the names in our graph need not differ.
std::vector<std::string> unique_names(const Graph& graph) {
  std::vector<std::string> names(graph.values.size());
  std::set<std::string> taken;
  const auto name = [&](ValueId id) {
    std::string& text = names[id.value];
    if (!text.empty()) return;
    text = graph[id].name;
    for (int i = 1; text.empty() || !taken.insert(text).second; ++i) {
      text = graph[id].name + "_" + std::to_string(i);
    }
  };
  for (const ValueId id : graph.inputs) name(id);
  for (const ValueId id : graph.outputs) name(id);
  for (size_t i = 0; i < names.size(); ++i) name(ValueId{static_cast<int32_t>(i)});
  return names;
}

// Returns the name of an attribute that the program's own rows have and ONNX's operators lack;
// empty: the node has none.
std::string_view own_attribute(const Node& node) {
  for (const std::string_view name : {"channels_last", "factors", "pad_value", "sums"})
    if (node.attributes.contains(std::string(name))) return name;
  for (const std::string_view name : {"transA", "transB"})
    if (node.op == "MatMul" && node.attributes.contains(std::string(name))) return name;
  return "";
}

// Returns the rounding of ONNX that `by_scale` is: ONNX has one for all axes.
Result<std::string> rounding_by_scale(const OpCall& resize) {
  const Tensor& scales = *resize.input(2).constant;
  bool grows = false, shrinks = false;
  for (int64_t i = 0; i < scales.num_elements(); ++i) {
    grows |= scales.get(i) > 1;
    shrinks |= scales.get(i) < 1;
  }
  if (grows && shrinks) return Error("it grows along one axis and shrinks along another");
  return std::string(shrinks ? "ceil" : "floor");
}

// Returns `node` in the form of `opset`: opset 13 has a reduction's axes as an attribute. An error
// if ONNX has no form of the node.
Result<Node> onnx_form(const Graph& graph, Node node, int64_t opset) {
  const auto error = [&](const auto&... why) {
    return Error("the node that makes \"",
                 graph[node.outputs[0]].name,
                 "\" cannot be written to an ONNX file: ",
                 why...);
  };
  if (node.op == "pruner::Compress") node.op = "Compress";  // whose axis is never absent
  if (!is_of_onnx(node.op)) return error("ONNX has no operator ", node.op);
  if (const std::string_view name = own_attribute(node); !name.empty())
    return error("ONNX's ", node.op, " has no attribute ", name);
  if (node.op == "Resize" && OpCall{graph, node}.text("nearest_mode", "") == "by_scale") {
    const Result<std::string> rounding = rounding_by_scale({graph, node});
    if (!rounding.ok()) return error(rounding.error().message());
    node.attributes["nearest_mode"] = *rounding;
  }
  if (node.op == "Cast" || node.op == "BitCast") {
    node.attributes["to"] = int64_t{dtype_to_onnx(graph[node.outputs[0]].dtype)};
  }
  if (node.op == "Div") node.attributes.erase("exact");  // ours: all others divide exactly
  // Opset 18 has num_outputs, and axes as an input of every reduction (ReduceSum since 13).
  if (opset >= 18) return node;
  node.attributes.erase("num_outputs");
  const bool reduces = node.op.starts_with("Reduce") && node.op != "ReduceSum";
  if (!reduces || node.inputs.size() < 2) return node;
  node.attributes["axes"] = *OpCall{graph, node}.constant_integers(1, "axes");
  node.inputs.resize(1);
  return node;
}

Result<onnx::ModelProto> model_of(const Graph& graph) {
  int64_t opset = kOldestOpset;
  for (const Node& node : graph.nodes) {
    // QuantizeLinear and DequantizeLinear are functions of ours, of the oldest opset.
    if (const GraphOp* op = find_graph_op(node.op)) opset = std::max(opset, op->since);
    for (const ValueId id : node.outputs) {
      if (is_only_moved(graph[id].dtype)) opset = std::max(opset, kOpsetOfCodes);
    }
  }
  onnx::ModelProto model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("pruner");
  model.add_opset_import()->set_version(opset);
  onnx::GraphProto& proto = *model.mutable_graph();
  proto.set_name(graph.name.empty() ? "graph" : graph.name);
  const std::vector<std::string> names = unique_names(graph);
  const auto name = [&](ValueId id) { return id.valid() ? names[id.value] : ""; };
  std::set<ValueId> constants, made;
  std::set<std::string> node_names;
  for (const Node& old : graph.nodes) {
    TRY_ASSIGN(const Node node, onnx_form(graph, old, opset));
    onnx::NodeProto& to = *proto.add_node();
    to.set_op_type(node.op);
    std::string node_name = node.name;
    for (int i = 1; !node_name.empty() && !node_names.insert(node_name).second; ++i)
      node_name = node.name + "_" + std::to_string(i);
    to.set_name(node_name);
    for (const ValueId id : node.inputs) {
      to.add_input(name(id));
      if (id.valid() && graph[id].constant) constants.insert(id);
    }
    for (const ValueId id : node.outputs) {
      to.add_output(name(id));
      made.insert(id);
    }
    for (const auto& [key, attribute] : node.attributes) set_attribute(to, key, attribute);
  }
  for (const ValueId id : graph.inputs) set_type(*proto.add_input(), name(id), graph[id]);
  for (const ValueId id : graph.outputs) {
    set_type(*proto.add_output(), name(id), graph[id]);
    if (graph[id].constant) constants.insert(id);
  }
  for (const ValueId id : constants) {
    if (!made.contains(id))
      *proto.add_initializer() = tensor_to_proto(name(id), *graph[id].constant);
  }
  return model;
}

}  // namespace

Result<Unit> export_onnx(const Graph& graph, const std::string& path) {
  TRY_ASSIGN(const onnx::ModelProto model, model_of(graph));
  if (model.ByteSizeLong() > INT_MAX) {
    return Error(path, ": the network has more than 2 GB, the most that an ONNX file holds");
  }
  std::string bytes;
  model.SerializeToString(&bytes);
  return write_file(path, bytes);
}

}  // namespace pruner
