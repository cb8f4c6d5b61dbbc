#include "graph/onnx/upgrade.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "graph/functions/body.h"

namespace pruner {

static ValueId add_constant(Graph& graph, const std::string& name, Tensor tensor) {
  graph.values.push_back({name, tensor.dtype(), tensor.shape(), tensor});
  return ValueId{static_cast<int32_t>(graph.values.size()) - 1};
}

// Integers, or one, become a list of int64, a real number a scalar of type `real`.
static Result<Tensor> tensor_of(const Attribute& attribute, DType real) {
  if (const auto* values = std::get_if<std::vector<int64_t>>(&attribute)) {
    Tensor tensor(DType::kInt64, {static_cast<int64_t>(values->size())});
    std::copy(values->begin(), values->end(), tensor.values<int64_t>().begin());
    return tensor;
  }
  if (const auto* value = std::get_if<int64_t>(&attribute)) {
    Tensor tensor(DType::kInt64, {1});
    tensor.set_int(0, *value);
    return tensor;
  }
  if (const auto* value = std::get_if<double>(&attribute)) {
    Tensor tensor(real, {});
    tensor.set(0, *value);
    return tensor;
  }
  return Error("has a value of the wrong type");
}

// Attributes that later opsets made inputs: GraphOp::now_inputs.
static Result<Unit> move_attributes(Graph& graph, Node& node, const GraphOp& op) {
  const DType real = node.inputs.empty() || !node.inputs[0].valid() ? DType::kFloat32
                                                                    : graph[node.inputs[0]].dtype;
  for (const auto& [name, place] : listed(op.now_inputs)) {
    const auto input = static_cast<size_t>(place - '0');
    const auto it = node.attributes.find(std::string(name));
    if (it == node.attributes.end()) continue;
    Result<Tensor> tensor = tensor_of(it->second, real);
    if (!tensor.ok()) return Error("attribute \"", name, "\" ", tensor.error().message());
    if (node.inputs.size() <= input) node.inputs.resize(input + 1);
    const std::string made = graph[node.outputs[0]].name + "/" + std::string(name);
    node.inputs[input] = add_constant(graph, made, *std::move(tensor));
    node.attributes.erase(it);
  }
  return Unit{};
}

// Constant's other ways to say its value.
static Result<Unit> constant_value(Node& node) {
  for (const char* name : {"value_float", "value_int", "value_floats", "value_ints"}) {
    const auto it = node.attributes.find(name);
    if (it == node.attributes.end()) continue;
    Tensor tensor;
    if (const auto* real = std::get_if<double>(&it->second)) {
      tensor = Tensor(DType::kFloat32, {});
      tensor.set(0, *real);
    } else if (const auto* integer = std::get_if<int64_t>(&it->second)) {
      tensor = Tensor(DType::kInt64, {});
      tensor.set_int(0, *integer);
    } else if (const auto* reals = std::get_if<std::vector<double>>(&it->second)) {
      tensor = Tensor(DType::kFloat32, {static_cast<int64_t>(reals->size())});
      for (size_t i = 0; i < reals->size(); ++i) tensor.set(static_cast<int64_t>(i), (*reals)[i]);
    } else {
      TRY_ASSIGN(tensor, tensor_of(it->second, DType::kFloat32));
    }
    node.attributes.clear();
    node.attributes.emplace("value", std::move(tensor));
    break;
  }
  if (node.attributes.contains("value")) return Unit{};
  return Error("has no value of numbers");
}

// Opset 6 and before: the second operand's dimensions stand from `axis` on.
static std::vector<Node> align_operand(Graph& graph, Node node) {
  const auto given_axis = node.attributes.extract("axis");
  node.attributes.erase("broadcast");
  if (node.inputs.size() != 2 || !node.inputs[0].valid() || !node.inputs[1].valid()) return {node};
  const bool slope = node.op == "PRelu";
  const std::vector<int64_t> a = graph[node.inputs[0]].shape;
  std::vector<int64_t> b = graph[node.inputs[1]].shape;
  const int64_t* given = given_axis ? std::get_if<int64_t>(&given_axis.mapped()) : nullptr;
  int64_t axis = given != nullptr ? *given : 1;
  if (axis < 0) axis += static_cast<int64_t>(a.size());
  if ((given == nullptr && !slope) || axis < 0 || axis > static_cast<int64_t>(a.size()) ||
      b.empty())
    return {node};
  const int64_t after = static_cast<int64_t>(a.size()) - axis - static_cast<int64_t>(b.size());
  if (after <= 0) return {node};
  b.insert(b.end(), static_cast<size_t>(after), 1);
  Tensor shape(DType::kInt64, {static_cast<int64_t>(b.size())});
  std::copy(b.begin(), b.end(), shape.values<int64_t>().begin());
  const std::string name = graph[node.outputs[0]].name + "/aligned";
  const ValueId target = add_constant(graph, name + "/shape", std::move(shape));
  graph.values.push_back({name, {}, {}, std::nullopt});
  const ValueId aligned{static_cast<int32_t>(graph.values.size()) - 1};
  Node reshape{"Reshape", node.name, {node.inputs[1], target}, {aligned}, {}};
  node.inputs[1] = aligned;
  return {std::move(reshape), std::move(node)};
}

// Before opset 13 softmax ran over all dimensions from `axis` on as if they were one.
static Result<std::vector<Node>> softmax_over_the_rest(Graph& graph, Node node) {
  if (node.inputs.empty() || !node.inputs[0].valid()) return std::vector{node};
  const std::vector<int64_t> in = graph[node.inputs[0]].shape;
  const auto rank = static_cast<int64_t>(in.size());
  const OpCall call{graph, node};
  if (node.attributes.contains("axis") && !std::get_if<int64_t>(&node.attributes["axis"])) {
    return Error("attribute \"axis\" has a value of the wrong type");
  }
  TRY_ASSIGN(const int64_t axis, call.axis("axis", 1, std::max<int64_t>(rank, 2)));
  node.attributes["axis"] = int64_t{-1};
  if (axis >= rank - 1) return std::vector{node};
  const auto value = [&](const std::string& suffix) {
    graph.values.push_back({graph[node.outputs[0]].name + suffix, {}, {}, std::nullopt});
    return ValueId{static_cast<int32_t>(graph.values.size()) - 1};
  };
  const ValueId flat = value("/flat"), result = value("/flat_result");
  Tensor shape(DType::kInt64, {rank});
  std::copy(in.begin(), in.end(), shape.values<int64_t>().begin());
  const ValueId back = add_constant(graph, graph[node.outputs[0]].name + "/shape", shape);
  Node flatten{"Flatten", node.name, {node.inputs[0]}, {flat}, {{"axis", axis}}};
  Node reshape{"Reshape", node.name, {result, back}, node.outputs, {}};
  node.inputs = {flat};
  node.outputs = {result};
  return std::vector{std::move(flatten), std::move(node), std::move(reshape)};
}

// Opset 10: input 1 had the scales, and there was one way to place. ONNX said nothing of rounding:
// ONNX Runtime rounds up along an axis that shrinks and down along one that grows.
static void resize_by_scales(Node& node) {
  node.inputs.insert(node.inputs.begin() + 1, ValueId{});
  node.attributes["coordinate_transformation_mode"] = std::string("asymmetric");
  node.attributes["nearest_mode"] = std::string("by_scale");
}

// Opsets before 7: attributes that had another name or type.
static void rename_first_attributes(Node& node) {
  const auto number = [&](const char* name) {
    const auto it = node.attributes.find(name);
    const auto* value = it == node.attributes.end() ? nullptr : std::get_if<double>(&it->second);
    return value == nullptr ? std::nullopt : std::optional(*value);
  };
  if (node.op == "Pad" && node.attributes.contains("paddings")) {
    node.attributes.insert_or_assign("pads", std::move(node.attributes["paddings"]));
    node.attributes.erase("paddings");
  }
  const std::optional<double> p = number("p"), height = number("height_scale"),
                              width = number("width_scale");
  const bool pools = node.op == "LpPool" || node.op == "GlobalLpPool";
  if (pools && p && *p == std::floor(*p)) node.attributes["p"] = static_cast<int64_t>(*p);
  if (node.op == "Upsample" && height && width) {
    node.attributes["scales"] = std::vector<double>{1, 1, *height, *width};
    node.attributes.erase("height_scale");
    node.attributes.erase("width_scale");
  }
}

Result<std::vector<Node>> upgrade_node(Graph& graph, Node node, int64_t opset) {
  const GraphOp* op = find_graph_op(node.op);
  if (opset < 7) rename_first_attributes(node);
  if (op != nullptr) TRY(move_attributes(graph, node, *op));
  if (node.op == "Constant") TRY(constant_value(node));
  if (node.op == "BatchNormalization" && node.attributes.contains("spatial")) {
    const auto* spatial = std::get_if<int64_t>(&node.attributes["spatial"]);
    if (spatial == nullptr || *spatial == 0) return Error("spatial 0 is not supported");
    node.attributes.erase("spatial");
  }
  if (node.op == "BatchNormalization" && OpCall{graph, node}.has_attribute("training_mode")) {
    const auto* training = std::get_if<int64_t>(&node.attributes["training_mode"]);
    if (training != nullptr && *training != 0) node.op = kTrainingBatchNormalization;
  }
  if (node.op == "LayerNormalization" && node.outputs.size() > 1)
    node.op = kStatisticalLayerNormalization;
  if (opset < 13 && (node.op == "Softmax" || node.op == "LogSoftmax")) {
    return softmax_over_the_rest(graph, std::move(node));
  }
  if (opset < 16 && node.op == "RoiAlign")
    node.attributes["coordinate_transformation_mode"] = std::string("output_half_pixel");
  if (opset < 11 && node.op == "Resize" && node.inputs.size() == 2) resize_by_scales(node);
  if (opset < 7 && op != nullptr && op->fusion == Fusion::kBroadcast) {
    return align_operand(graph, std::move(node));
  }
  return std::vector{std::move(node)};
}

}  // namespace pruner
