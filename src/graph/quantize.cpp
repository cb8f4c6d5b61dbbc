#include "graph/quantize.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "graph/functions/body.h"
#include "graph/passes.h"
#include "support/check.h"

namespace pruner {
namespace {

bool is_among(std::string_view op, std::initializer_list<std::string_view> ops) {
  return std::ranges::find(ops, op) != ops.end();
}

bool is_contraction(const Node& node) { return is_among(node.op, {"Conv", "Gemm", "MatMul"}); }
bool is_clip(const Node& node) { return is_among(node.op, {"Clip", "Relu"}); }
// Whether the node's result has the steps of its data.
bool moves(const Node& node) {
  return is_among(node.op, {"DepthToSpace", "MaxPool", "Reshape", "Slice", "Transpose"});
}
bool combines(const Node& node) {
  return is_among(node.op, {"Add", "AveragePool", "Concat", "GlobalAveragePool"});
}

/// Decides which values of a network become bytes.
class Plan {
 public:
  explicit Plan(const Graph& graph);

  /// Returns the value whose steps a value has; invalid: the value stays as it is.
  ValueId root(ValueId id) const { return id.valid() ? root_[slot(id)] : id; }
  /// The dimension of a contraction's weight that its outputs are; none where it is no constant.
  std::optional<size_t> output_axis(const Node& node) const;

 private:
  static size_t slot(ValueId id) { return static_cast<size_t>(id.value); }
  bool is_real(ValueId id) const {
    return id.valid() && !graph_[id].constant && graph_[id].dtype == DType::kFloat32;
  }
  void ask_for(ValueId id) {
    if (is_real(id) && !root(id).valid()) root_[slot(id)] = id;
  }
  ValueId end_of_clips(const Node& node) const;

  const Graph& graph_;
  std::vector<ValueId> root_;                      // root of each value
  std::vector<std::vector<const Node*>> readers_;  // nodes by value; null: the network's output
};

std::optional<size_t> Plan::output_axis(const Node& node) const {
  const Value& weight = graph_[node.inputs[1]];
  if (!weight.constant || weight.dtype != DType::kFloat32) return std::nullopt;
  if (node.op == "Conv") return 0;
  if (weight.shape.size() != 2) return std::nullopt;
  return OpCall{graph_, node}.integer("transB", 0) != 0 ? 0 : 1;
}

Plan::Plan(const Graph& graph)
    : graph_(graph), root_(graph.values.size()), readers_(graph.values.size()) {
  for (const Node& node : graph.nodes) {
    for (const ValueId id : node.inputs) {
      if (id.valid()) readers_[slot(id)].push_back(&node);
    }
  }
  for (const ValueId id : graph.outputs) readers_[slot(id)].push_back(nullptr);
  const auto runs_on_bytes = [&](const Node& node) {
    const bool of_two = node.op == "MatMul" && is_real(node.inputs[1]);
    return is_contraction(node) && is_real(node.inputs[0]) && (of_two || output_axis(node));
  };
  for (const Node& node : graph.nodes) {
    if (!runs_on_bytes(node)) continue;
    ask_for(node.inputs[0]);
    ask_for(node.inputs[1]);
  }
  for (const Node& node : graph.nodes) {
    const auto is_quantized = [&](ValueId id) { return root(id).valid(); };
    if (moves(node) && is_quantized(node.inputs[0])) {
      if (is_real(node.outputs[0])) root_[slot(node.outputs[0])] = root(node.inputs[0]);
    } else if ((node.op == "Conv" && runs_on_bytes(node)) ||
               (combines(node) && std::ranges::all_of(node.inputs, is_quantized))) {
      const ValueId end = end_of_clips(node);
      const std::vector<const Node*>& readers = readers_[slot(end)];
      // An output of the network is worth its digits.
      if (std::ranges::find(readers, nullptr) == readers.end()) ask_for(end);
    }
  }
}

// Returns the last value of a chain: the node's output, then the output of each Relu or Clip that
// is the only reader of the value before.
ValueId Plan::end_of_clips(const Node& node) const {
  ValueId end = node.outputs[0];
  while (readers_[slot(end)].size() == 1 && readers_[slot(end)][0] != nullptr &&
         is_clip(*readers_[slot(end)][0])) {
    end = readers_[slot(end)][0]->outputs[0];
  }
  return end;
}

/// Writes the nodes of the QDQ form.
class Writer {
 public:
  Writer(Graph graph, std::span<const ValueId> values, std::span<const ValueRange> ranges);
  Graph write() &&;

 private:
  struct Steps {
    double scale = 1;
    ValueId scale_id, zero_id;
  };

  ValueId add_value(const std::string& name, DType dtype, std::vector<int64_t> shape);
  ValueId add_constant(const std::string& name, Tensor tensor);
  ValueId add_node(const char* op, std::vector<ValueId> inputs, DType dtype, int64_t axis);
  ValueId dequantized(ValueId id);
  void write_operands(Node& node, const Plan& plan);
  ValueId weight(ValueId id, size_t axis);
  ValueId bias(ValueId id, double data_scale, ValueId weight_scales);

  Graph graph_;
  std::map<ValueId, Steps> steps_;                                             // one per root
  std::map<ValueId, ValueId> dequantized_;                                     // one per value
  std::map<std::pair<ValueId, size_t>, std::pair<ValueId, ValueId>> weights_;  // with their scales
};

Writer::Writer(Graph graph, std::span<const ValueId> values, std::span<const ValueRange> ranges)
    : graph_(std::move(graph)) {
  constexpr double kSteps = 255;
  for (size_t i = 0; i < values.size(); ++i) {
    const double low = std::min(ranges[i].low, 0.0), high = std::max(ranges[i].high, 0.0);
    const auto scale = static_cast<float>((high - low) / kSteps);
    Steps steps;
    // All zeros have a step of any size.
    steps.scale = scale > 0 ? scale : 1;
    const std::string name = graph_[values[i]].name;
    Tensor scale_tensor(DType::kFloat32, {}), zero(DType::kUInt8, {});
    scale_tensor.set(0, steps.scale);
    zero.set(0, std::clamp(std::nearbyint(-low / steps.scale), 0.0, kSteps));
    steps.scale_id = add_constant(name + "_scale", std::move(scale_tensor));
    steps.zero_id = add_constant(name + "_zero_point", std::move(zero));
    steps_[values[i]] = steps;
  }
}

ValueId Writer::add_value(const std::string& name, DType dtype, std::vector<int64_t> shape) {
  graph_.values.push_back({name, dtype, std::move(shape), std::nullopt});
  return ValueId{static_cast<int32_t>(graph_.values.size()) - 1};
}

ValueId Writer::add_constant(const std::string& name, Tensor tensor) {
  const ValueId id = add_value(name, tensor.dtype(), tensor.shape());
  graph_[id].constant = std::move(tensor);
  return id;
}

// Adds an operator in the form that ONNX has; in our graphs the operator is a function.
ValueId Writer::add_node(const char* op, std::vector<ValueId> inputs, DType dtype, int64_t axis) {
  const std::string name = graph_[inputs[0]].name + "_" + op;
  const ValueId out = add_value(name, dtype, graph_[inputs[0]].shape);
  Attributes attributes;
  if (graph_[inputs[1]].shape.size() == 1) attributes["axis"] = axis;
  graph_.nodes.push_back({op, name, std::move(inputs), {out}, std::move(attributes)});
  return out;
}

ValueId Writer::dequantized(ValueId id) {
  const auto it = dequantized_.find(id);
  return it == dequantized_.end() ? id : it->second;
}

ValueId Writer::weight(ValueId id, size_t axis) {
  constexpr double kMost = 127;
  const auto [it, fresh] = weights_.try_emplace({id, axis});
  if (!fresh) return it->second.first;
  const Tensor real = *graph_[id].constant;
  const std::string name = graph_[id].name;
  const int64_t n = real.shape()[axis];
  const int64_t run = element_count(std::span(real.shape()).subspan(axis + 1));
  Tensor scales(DType::kFloat32, {n}), q(DType::kInt8, real.shape());
  const auto output = [&](int64_t i) { return i / run % n; };
  std::vector<double> most(static_cast<size_t>(n), 0);
  for (int64_t i = 0; i < real.num_elements(); ++i) {
    double& of_output = most[static_cast<size_t>(output(i))];
    of_output = std::max(of_output, std::abs(real.get(i)));
  }
  for (int64_t i = 0; i < n; ++i) {
    const auto scale = static_cast<float>(most[static_cast<size_t>(i)] / kMost);
    scales.set(i, scale > 0 ? scale : 1);
  }
  for (int64_t i = 0; i < real.num_elements(); ++i) {
    const double steps = std::nearbyint(real.get(i) / scales.get(output(i)));
    q.set(i, std::clamp(steps, -kMost, kMost));
  }
  const ValueId scale_id = add_constant(name + "_scale", scales);
  const ValueId zero_id = add_constant(name + "_zero_point", Tensor(DType::kInt8, {n}));
  const ValueId q_id = add_constant(name + "_quantized", std::move(q));
  const auto along = static_cast<int64_t>(axis);
  it->second = {add_node("DequantizeLinear", {q_id, scale_id, zero_id}, DType::kFloat32, along),
                scale_id};
  return it->second.first;
}

// Quantizes a bias in steps of the products; returns the bias itself if int32 cannot hold them.
ValueId Writer::bias(ValueId id, double data_scale, ValueId weight_scales) {
  constexpr double kMost = 2147483647;
  const Tensor real = *graph_[id].constant, of_weight = *graph_[weight_scales].constant;
  const int64_t n = of_weight.num_elements();
  if (real.shape() != std::vector{n}) return id;
  Tensor scales(DType::kFloat32, {n}), q(DType::kInt32, {n});
  for (int64_t i = 0; i < n; ++i) {
    scales.set(i, static_cast<float>(data_scale) * static_cast<float>(of_weight.get(i)));
    const double steps = std::nearbyint(real.get(i) / scales.get(i));
    if (!(std::abs(steps) <= kMost)) return id;
    q.set(i, steps);
  }
  const std::string name = graph_[id].name;
  const ValueId q_id = add_constant(name + "_quantized", std::move(q));
  const ValueId scale_id = add_constant(name + "_scale", std::move(scales));
  const ValueId zero_id = add_constant(name + "_zero_point", Tensor(DType::kInt32, {n}));
  return add_node("DequantizeLinear", {q_id, scale_id, zero_id}, DType::kFloat32, 0);
}

void Writer::write_operands(Node& node, const Plan& plan) {
  const ValueId root = is_contraction(node) ? plan.root(node.inputs[0]) : ValueId{};
  const std::optional<size_t> axis =
      root.valid() ? plan.output_axis(node) : std::optional<size_t>();
  if (axis) {
    const ValueId old = node.inputs[1];
    node.inputs[1] = weight(old, *axis);
    const OpCall call{graph_, node};
    const bool plain = call.number("alpha", 1) == 1 && call.number("beta", 1) == 1;
    if (plain && call.has(2) && call.input(2).constant)
      node.inputs[2] =
          bias(node.inputs[2], steps_.at(root).scale, weights_.at({old, *axis}).second);
  }
  for (ValueId& id : node.inputs) id = dequantized(id);
}

Graph Writer::write() && {
  const Graph old = graph_;  // shares the tensors
  const Plan plan(old);
  const auto pass_through_bytes = [&](ValueId id) {
    const ValueId root = plan.root(id);
    if (!root.valid()) return;
    const Steps& steps = steps_.at(root);
    const ValueId q =
        add_node("QuantizeLinear", {id, steps.scale_id, steps.zero_id}, DType::kUInt8, 0);
    dequantized_[id] =
        add_node("DequantizeLinear", {q, steps.scale_id, steps.zero_id}, DType::kFloat32, 0);
  };
  std::vector<Node> nodes = std::exchange(graph_.nodes, {});
  for (const ValueId id : graph_.inputs) pass_through_bytes(id);
  for (Node& node : nodes) {
    write_operands(node, plan);
    const std::vector<ValueId> outputs = node.outputs;
    graph_.nodes.push_back(std::move(node));
    for (const ValueId id : outputs) pass_through_bytes(id);
  }
  return remove_dead(std::move(graph_));
}

}  // namespace

Graph prepared_to_quantize(Graph graph) {
  return fold_batch_norm(fold_constants(simplify(std::move(graph))));
}

bool is_quantized(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [&](const Node& node) {
    return node.op == "Quantize" || node.op == "Dequantize" ||
           OpCall{graph, node}.sums() == DType::kInt32;
  });
}

Result<std::vector<ValueId>> values_to_quantize(const Graph& graph) {
  if (is_quantized(graph)) return Error("the network is quantized already");
  const Plan plan(graph);
  std::vector<ValueId> values;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const ValueId id{static_cast<int32_t>(i)};
    if (plan.root(id) == id) values.push_back(id);
  }
  if (values.empty())
    return Error("the network has no Conv, Gemm or MatMul of float32 to quantize");
  return values;
}

Graph with_ranges_of(Graph graph, std::span<const ValueId> values) {
  graph.outputs.clear();
  for (const ValueId id : values) {
    for (const char* op : {"ReduceMin", "ReduceMax"}) {
      const std::string name = graph[id].name + "/" + op;
      graph.values.push_back({name, {}, {}, std::nullopt});
      const ValueId out{static_cast<int32_t>(graph.values.size()) - 1};
      const Result<Unit> made =
          append_call(graph, {op, name, {id}, {out}, {{"keepdims", int64_t{0}}}});
      CHECK(made.ok()) << made.error().message();
      graph.outputs.push_back(out);
    }
  }
  return remove_dead(std::move(graph));
}

Graph quantized(Graph graph, std::span<const ValueId> values, std::span<const ValueRange> ranges) {
  return Writer(std::move(graph), values, ranges).write();
}

}  // namespace pruner
