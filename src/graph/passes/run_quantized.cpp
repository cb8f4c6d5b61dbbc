// Operators of a QDQ network, which stand between Dequantize and Quantize, become operators of
// bytes. Contractions add up products of bytes, and operators that only move data move bytes. With
// Numerics::kOnnxRuntime every operator becomes the one that ONNX Runtime's optimizer makes of it
// (QDQSelectorActionTransformer, WeightBiasQuantization). With Numerics::kOnnx only operators
// change whose result ONNX's definition does not fix otherwise. The bodies in
// graph/functions/quantized*.cpp say what the new operators compute. This pass is the first, since
// later passes fold weights to floats.
#include <algorithm>
#include <cmath>
#include <optional>

#include "graph/evaluate.h"
#include "graph/functions/body.h"
#include "graph/passes.h"
#include "support/check.h"

namespace pruner {
namespace {

/// `Steps` says which reals the numbers q of a tensor stand for: (q - zero) * scale. Scale and zero
/// point are constants.
struct Steps {
  ValueId scale, zero;  // the zero point may be left out
};

/// A quantized tensor.
struct Quantized {
  ValueId q;
  Steps steps;
};

/// `Tail` is the end of an operator's kernel: a Clip in steps of the result, and the Quantize.
struct Tail {
  std::vector<size_t> nodes;  // the Quantize is the last
  Steps steps;
  DType dtype = DType::kUInt8;
  double low, high;  // range of the numbers that are kept: the type's, cut by Relu and Clip

  bool cuts_off() const {
    return low > static_cast<double>(least_int(dtype)) ||
           high < static_cast<double>(greatest_int(dtype));
  }
};

class Runner {
 public:
  Runner(Graph graph, Numerics numerics);
  Graph run() &&;

 private:
  const Value& at(ValueId id) const { return graph_[id]; }
  const Tensor& known(ValueId id) const { return *at(id).constant; }
  bool is_known(ValueId id) const { return id.valid() && at(id).constant.has_value(); }
  ValueId resolved(ValueId id) const { return id.valid() ? alias_[slot(id)] : id; }
  static size_t slot(ValueId id) { return static_cast<size_t>(id.value); }

  bool is_of_one_scale(const Steps& steps) const { return known(steps.scale).num_elements() == 1; }
  double scale_of(const Steps& steps) const { return known(steps.scale).get(0); }
  int64_t zero_of(const Steps& steps) const {
    return steps.zero.valid() ? known(steps.zero).get_int(0) : 0;
  }
  bool equal(const Steps& a, const Steps& b) const;
  std::optional<Quantized> operand(const Node& node, size_t i) const;
  std::optional<Quantized> tensor_operand(const Node& node, size_t i) const;
  std::optional<Quantized> weight_operand(const Node& node, size_t axis) const;
  const Node* only_reader(ValueId id, size_t* index) const;
  bool follow_clip(const Node& node, std::vector<double>& range) const;
  std::optional<Tail> tail_of(const Node& node) const;
  std::optional<ValueId> bias_of(const Node& node, const Quantized& x, const Quantized& w);
  bool rounds_any_bias(const Node& node) const;
  std::optional<ValueId> real_bias_of(const Node& node) const;

  ValueId constant(const std::string& name, Tensor tensor);
  ValueId flat(ValueId id);
  ValueId zero_point(const Steps& steps, DType dtype);
  std::vector<ValueId> inputs_of(std::initializer_list<Quantized> operands);
  void add_steps_of(const Tail& tail, std::vector<ValueId>& inputs);
  ValueId new_value(const std::string& like);
  void emit(Node node);
  ValueId call(const Node& like, std::string op, std::vector<ValueId> inputs, Attributes a);
  void finish_with(const Node& like,
                   const Tail& tail,
                   std::string op,
                   std::vector<ValueId> inputs,
                   Attributes attributes);

  bool run_conv(const Node& node);
  bool run_gemm(const Node& node);
  bool run_matmul(const Node& node);
  bool run_binary(const Node& node);
  bool run_unary(const Node& node);
  bool run_concat(const Node& node);
  bool run_moved(const Node& node);
  bool run_quantize(const Node& node);
  void note(const Node& node);
  bool run_node(const Node& node);

  Graph graph_;
  const Numerics numerics_;
  std::vector<Node> old_;
  std::vector<ValueId> alias_;  // source of an Identity's result, else the value; per value
  std::vector<std::vector<size_t>> readers_;  // old nodes, their count for an output; per value
  std::vector<bool> done_;  // whether an earlier node's kernel has the node; per old node
  std::map<ValueId, Quantized> dequantized_;  // the quantized form, per result of a Dequantize
};

Runner::Runner(Graph graph, Numerics numerics)
    : graph_(std::move(graph)), numerics_(numerics), old_(std::exchange(graph_.nodes, {})) {
  for (size_t i = 0; i < graph_.values.size(); ++i) alias_.emplace_back(static_cast<int32_t>(i));
  readers_.resize(graph_.values.size());
  done_.assign(old_.size(), false);
  for (const ValueId id : graph_.outputs) readers_[slot(id)].push_back(old_.size());
  for (size_t i = 0; i < old_.size(); ++i) {
    Node& node = old_[i];
    for (ValueId& id : node.inputs) id = resolved(id);
    const bool kept = std::ranges::find(graph_.outputs, node.outputs[0]) != graph_.outputs.end();
    if (node.op == "Identity" && !kept) {
      alias_[slot(node.outputs[0])] = node.inputs[0];
      done_[i] = true;
      continue;
    }
    for (const ValueId id : node.inputs) {
      if (id.valid()) readers_[slot(id)].push_back(i);
    }
  }
}

bool Runner::equal(const Steps& a, const Steps& b) const {
  return scale_of(a) == scale_of(b) && zero_of(a) == zero_of(b);
}

std::optional<Quantized> Runner::operand(const Node& node, size_t i) const {
  if (i >= node.inputs.size()) return std::nullopt;
  const auto it = dequantized_.find(node.inputs[i]);
  return it == dequantized_.end() ? std::nullopt : std::optional(it->second);
}

// Returns input i if it holds bytes of one scale.
std::optional<Quantized> Runner::tensor_operand(const Node& node, size_t i) const {
  const std::optional<Quantized> found = operand(node, i);
  if (!found || !is_of_one_scale(found->steps)) return std::nullopt;
  const DType dtype = at(found->q).dtype;
  if (dtype != DType::kUInt8 && dtype != DType::kInt8) return std::nullopt;
  return found;
}

// Returns input 1 if it holds constant bytes with one scale, or one scale for each index of `axis`.
std::optional<Quantized> Runner::weight_operand(const Node& node, size_t axis) const {
  const std::optional<Quantized> found = operand(node, 1);
  if (!found || !is_known(found->q)) return std::nullopt;
  const Value& q = at(found->q);
  if ((q.dtype != DType::kUInt8 && q.dtype != DType::kInt8) || axis >= q.shape.size())
    return std::nullopt;
  if (is_of_one_scale(found->steps)) return found;
  std::vector<int64_t> shape(q.shape.size(), 1);
  shape[axis] = q.shape[axis];
  return at(found->steps.scale).shape == shape ? found : std::nullopt;
}

const Node* Runner::only_reader(ValueId id, size_t* index) const {
  const std::vector<size_t>& readers = readers_[slot(id)];
  if (readers.size() != 1 || readers[0] == old_.size()) return nullptr;
  *index = readers[0];
  return &old_[readers[0]];
}

// Cuts `range` to that of a Relu or a Clip by constants. False: the node is no such node, or
// nothing is left of the range.
bool Runner::follow_clip(const Node& node, std::vector<double>& range) const {
  if (node.op == "Relu") {
    range[0] = std::max(range[0], 0.0);
    return true;
  }
  if (node.op != "Clip") return false;
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (!node.inputs[i].valid()) continue;
    if (!is_known(node.inputs[i])) return false;
    const double bound = known(node.inputs[i]).get(0);
    if (i == 1) range[0] = std::max(range[0], bound);
    if (i == 2) range[1] = std::min(range[1], bound);
  }
  return range[0] <= range[1];
}

// Returns the tail of the node if it ends in a Quantize to bytes of one scale. Nothing else may
// read the values between the node and the Quantize.
std::optional<Tail> Runner::tail_of(const Node& node) const {
  Tail tail;
  std::vector<double> range = {-INFINITY, INFINITY};
  size_t at_node = 0;
  const Node* next = only_reader(node.outputs[0], &at_node);
  while (next != nullptr && follow_clip(*next, range)) {
    tail.nodes.push_back(at_node);
    next = only_reader(next->outputs[0], &at_node);
  }
  if (next == nullptr || next->op != "Quantize" || next->inputs.size() < 2) return std::nullopt;
  tail.nodes.push_back(at_node);
  tail.steps.scale = next->inputs[1];
  if (next->inputs.size() > 2) tail.steps.zero = next->inputs[2];
  const bool constant =
      is_known(tail.steps.scale) && (!tail.steps.zero.valid() || is_known(tail.steps.zero));
  if (!constant || !is_of_one_scale(tail.steps)) return std::nullopt;
  tail.dtype = at(next->outputs[0]).dtype;
  if (tail.dtype != DType::kUInt8 && tail.dtype != DType::kInt8) return std::nullopt;
  const auto in_steps = [&](double real) {
    const float ratio = static_cast<float>(real) / static_cast<float>(scale_of(tail.steps));
    const double q = std::nearbyint(ratio) + static_cast<double>(zero_of(tail.steps));
    return std::clamp(q,
                      static_cast<double>(least_int(tail.dtype)),
                      static_cast<double>(greatest_int(tail.dtype)));
  };
  // Rounding keeps the order: cutting off before or after rounding gives the same.
  tail.low = in_steps(range[0]);
  tail.high = in_steps(range[1]);
  return tail;
}

// Whether ONNX Runtime rounds a bias of real numbers to whole steps of the products, however far
// the bias moves. It does if a Quantize follows.
bool Runner::rounds_any_bias(const Node& node) const {
  return numerics_ == Numerics::kOnnxRuntime && tail_of(node).has_value();
}

// Returns the bias in steps of the products, [outputs]; an invalid id if the node has no bias, and
// nothing if the bias is no whole number of steps to 2^-20 of itself. Exporters write whole
// numbers: the bias's scale is the product of the other two scales, rounded to float32. Rounding
// the bias moves a result by at most 16 units of the last place of the bias. ONNX Runtime has no
// such bound: it takes the codes of a Gemm's bias whatever their scale is.
std::optional<ValueId> Runner::bias_of(const Node& node, const Quantized& x, const Quantized& w) {
  constexpr double kMost = 2147483647;
  if (node.inputs.size() < 3 || !node.inputs[2].valid()) return ValueId{};
  const ValueId id = node.inputs[2];
  const std::optional<Quantized> quantized = operand(node, 2);
  const Tensor& scales = known(w.steps.scale);
  const double x_scale = scale_of(x.steps);
  const auto step = [&](int64_t i) {
    return x_scale * scales.get(scales.num_elements() == 1 ? 0 : i);
  };
  const auto close = [](double a, double b) { return std::abs(a - b) <= 0x1p-20 * std::abs(b); };
  if (quantized && is_known(quantized->q) && at(quantized->q).dtype == DType::kInt32) {
    const Tensor& own = known(quantized->steps.scale);
    const int64_t n = known(quantized->q).num_elements();
    bool same = own.num_elements() == 1 || own.num_elements() == n;
    for (int64_t i = 0; same && i < n; ++i)
      same = close(own.get(own.num_elements() == 1 ? 0 : i), step(i));
    const bool codes_alone = numerics_ == Numerics::kOnnxRuntime && node.op == "Gemm";
    if (same || codes_alone)
      return constant(at(quantized->q).name + "/flat", known(quantized->q).reshaped({n}));
  }
  if (!is_known(id) || !is_float(at(id).dtype)) return std::nullopt;
  const Tensor& real = known(id);
  const bool any = !quantized && rounds_any_bias(node);
  Tensor whole(DType::kInt32, {real.num_elements()});
  for (int64_t i = 0; i < real.num_elements(); ++i) {
    const double q = std::nearbyint(real.get(i) / step(i));
    if (!(std::abs(q) <= kMost)) return std::nullopt;
    if (!close(q * step(i), real.get(i)) && !any) return std::nullopt;
    whole.set_int(i, static_cast<int64_t>(q));
  }
  return constant(at(id).name + "/whole", std::move(whole));
}

// Returns a bias [outputs] that is no whole number of steps, and is added to real numbers.
std::optional<ValueId> Runner::real_bias_of(const Node& node) const {
  const ValueId id = node.inputs[2];
  const std::vector<int64_t>& shape = at(node.outputs[0]).shape;
  if (!is_known(id) || !is_float(at(id).dtype) || shape.size() < 2) return std::nullopt;
  return at(id).shape == std::vector{shape[1]} ? std::optional(id) : std::nullopt;
}

ValueId Runner::constant(const std::string& name, Tensor tensor) {
  const ValueId id = new_value(name);
  graph_[id].dtype = tensor.dtype();
  graph_[id].shape = tensor.shape();
  graph_[id].constant = std::move(tensor);
  return id;
}

// Returns a constant with one dimension, or as a scalar if it has one element.
ValueId Runner::flat(ValueId id) {
  const Tensor tensor = known(id);
  const int64_t n = tensor.num_elements();
  return constant(at(id).name + "/flat",
                  tensor.reshaped(n == 1 ? std::vector<int64_t>{} : std::vector<int64_t>{n}));
}

ValueId Runner::zero_point(const Steps& steps, DType dtype) {
  if (steps.zero.valid()) return flat(steps.zero);
  return constant("zero", Tensor(dtype, {}));
}

// Returns each operand with its scale and zero point, as the functions of bytes take operands.
std::vector<ValueId> Runner::inputs_of(std::initializer_list<Quantized> operands) {
  std::vector<ValueId> inputs;
  for (const Quantized& x : operands) {
    const ValueId scale = flat(x.steps.scale);
    inputs.insert(inputs.end(), {x.q, scale, zero_point(x.steps, at(x.q).dtype)});
  }
  return inputs;
}

void Runner::add_steps_of(const Tail& tail, std::vector<ValueId>& inputs) {
  inputs.push_back(flat(tail.steps.scale));
  inputs.push_back(zero_point(tail.steps, tail.dtype));
}

ValueId Runner::new_value(const std::string& like) {
  const auto number = static_cast<int32_t>(graph_.values.size());
  graph_.values.push_back({like + "/" + std::to_string(number), {}, {}, std::nullopt});
  return ValueId{number};
}

// Appends a node that stands for nodes of the network. Whatever holds for the network's own nodes
// holds for the new node, so inference does not fail.
void Runner::emit(Node node) {
  const Result<Unit> appended = append_call(graph_, std::move(node));
  CHECK(appended.ok()) << appended.error().message();
}

ValueId Runner::call(const Node& like,
                     std::string op,
                     std::vector<ValueId> inputs,
                     Attributes attributes) {
  const ValueId out = new_value(at(like.outputs[0]).name);
  emit({std::move(op), like.name, std::move(inputs), {out}, std::move(attributes)});
  return out;
}

// Appends a call that makes the result of the tail's Quantize.
void Runner::finish_with(const Node& like,
                         const Tail& tail,
                         std::string op,
                         std::vector<ValueId> inputs,
                         Attributes attributes) {
  const ValueId out = old_[tail.nodes.back()].outputs[0];
  ValueId made = call(like, std::move(op), std::move(inputs), std::move(attributes));
  if (tail.cuts_off()) {
    const auto bound = [&](double value) {
      Tensor tensor(tail.dtype, {});
      tensor.set(0, value);
      return constant("bound", std::move(tensor));
    };
    made = call(like, "Clip", {made, bound(tail.low), bound(tail.high)}, {});
  }
  emit({"Identity", like.name, {made}, {out}, {}});
  for (const size_t node : tail.nodes) done_[node] = true;
}

bool Runner::run_conv(const Node& node) {
  const std::optional<Quantized> x = tensor_operand(node, 0), w = weight_operand(node, 0);
  if (!x || !w) return false;
  const std::optional<ValueId> bias = bias_of(node, *x, *w);
  const std::optional<ValueId> real = bias ? std::nullopt : real_bias_of(node);
  if (!bias && !real) return false;
  if (const std::optional<Tail> tail = bias ? tail_of(node) : std::nullopt) {
    std::vector<ValueId> inputs = inputs_of({*x, *w});
    add_steps_of(*tail, inputs);
    if (bias->valid()) inputs.push_back(*bias);
    finish_with(node, *tail, "QLinearConv", inputs, node.attributes);
    return true;
  }
  const auto rank = static_cast<int64_t>(at(x->q).shape.size());
  const auto beside = [&](const Tensor& values) {
    std::vector<int64_t> shape(static_cast<size_t>(rank), 1);
    shape[1] = values.num_elements();
    return values.reshaped(shape);
  };
  const ValueId x_zero = zero_point(x->steps, at(x->q).dtype);
  const ValueId w_zero = zero_point(w->steps, at(w->q).dtype);
  Tensor steps = beside(known(w->steps.scale)).clone();
  for (int64_t i = 0; i < steps.num_elements(); ++i)
    steps.set(i, static_cast<float>(scale_of(x->steps)) * static_cast<float>(steps.get(i)));
  ValueId sums = call(node, "ConvInteger", {x->q, w->q, x_zero, w_zero}, node.attributes);
  if (real) {
    const ValueId reals = call(node, "Dequantize", {sums, constant("steps", steps)}, {});
    emit({"Add", node.name, {reals, constant("bias", beside(known(*real)))}, node.outputs, {}});
    return true;
  }
  if (bias->valid()) sums = call(node, "Add", {sums, constant("bias", beside(known(*bias)))}, {});
  emit({"Dequantize", node.name, {sums, constant("steps", steps)}, node.outputs, {}});
  return true;
}

// The inputs are a, b and their steps, in the order that the functions of both products take.
bool Runner::run_gemm(const Node& node) {
  const OpCall gemm{graph_, node};
  const bool transposed = gemm.integer("transB", 0) != 0;
  const std::optional<Quantized> x = tensor_operand(node, 0),
                                 w = weight_operand(node, transposed ? 0 : 1);
  if (!x || !w || gemm.number("alpha", 1) != 1) return false;
  if (node.inputs.size() > 2 && gemm.number("beta", 1) != 1) return false;
  const std::optional<ValueId> bias = bias_of(node, *x, *w);
  const std::optional<ValueId> real = bias ? std::nullopt : real_bias_of(node);
  if (!bias && !real) return false;
  // A bias of other shapes than [n] differs by row.
  if (bias && bias->valid() && at(*bias).shape != std::vector{at(node.outputs[0]).shape[1]})
    return false;
  std::vector<ValueId> inputs = inputs_of({*x, *w});
  inputs.push_back(bias.value_or(ValueId{}));
  Attributes attributes = node.attributes;
  attributes.erase("beta");
  if (real) {
    const ValueId reals = call(node, "com.microsoft::QGemm", inputs, attributes);
    emit({"Add", node.name, {reals, *real}, node.outputs, {}});
    return true;
  }
  const std::optional<Tail> tail = tail_of(node);
  // The result of a QGemm is of the type of its data.
  if (tail && tail->dtype == at(x->q).dtype) {
    add_steps_of(*tail, inputs);
    finish_with(node, *tail, "com.microsoft::QGemm", inputs, attributes);
    return true;
  }
  emit({"com.microsoft::QGemm", node.name, inputs, node.outputs, attributes});
  return true;
}

bool Runner::run_matmul(const Node& node) {
  const std::optional<Quantized> x = tensor_operand(node, 0);
  std::optional<Quantized> w = tensor_operand(node, 1);
  if (!w && at(node.inputs[1]).shape.size() == 2) w = weight_operand(node, 1);
  if (!x || !w || at(x->q).shape.size() < 2 || at(w->q).shape.size() < 2) return false;
  std::vector<ValueId> inputs = inputs_of({*x, *w});
  if (const std::optional<Tail> tail = tail_of(node)) {
    add_steps_of(*tail, inputs);
    finish_with(node, *tail, "QLinearMatMul", inputs, {});
    return true;
  }
  inputs = {inputs[0], inputs[3], inputs[1], inputs[4], inputs[2], inputs[5]};
  emit({"com.microsoft::MatMulIntegerToFloat", node.name, inputs, node.outputs, {}});
  return true;
}

bool Runner::run_binary(const Node& node) {
  const std::optional<Quantized> x = tensor_operand(node, 0), y = tensor_operand(node, 1);
  if (!x || !y) return false;
  const std::optional<Tail> tail = tail_of(node);
  const DType dtype = at(x->q).dtype;
  // ONNX Runtime leaves out a Relu or Clip that changes nothing, and otherwise stops at it.
  if (!tail || tail->cuts_off()) return false;
  if (at(y->q).dtype != dtype || tail->dtype != dtype) return false;
  std::vector<ValueId> inputs = inputs_of({*x, *y});
  add_steps_of(*tail, inputs);
  finish_with(node, *tail, "com.microsoft::QLinear" + node.op, inputs, {});
  return true;
}

bool Runner::run_unary(const Node& node) {
  const std::optional<Quantized> x = tensor_operand(node, 0);
  if (!x) return false;
  const std::optional<Tail> tail = tail_of(node);
  if (!tail || tail->cuts_off() || tail->dtype != at(x->q).dtype) return false;
  // The functions of bytes have no dilations; in float32 the node computes what the file says.
  if (node.attributes.contains("dilations")) return false;
  std::vector<ValueId> inputs = inputs_of({*x});
  add_steps_of(*tail, inputs);
  finish_with(node, *tail, "com.microsoft::QLinear" + node.op, inputs, node.attributes);
  return true;
}

bool Runner::run_concat(const Node& node) {
  const std::optional<Tail> tail = tail_of(node);
  if (!tail) return false;
  std::vector<ValueId> inputs;
  add_steps_of(*tail, inputs);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const std::optional<Quantized> part = tensor_operand(node, i);
    if (!part || at(part->q).dtype != tail->dtype) return false;
    std::ranges::copy(inputs_of({*part}), std::back_inserter(inputs));
  }
  finish_with(node, *tail, "com.microsoft::QLinearConcat", inputs, node.attributes);
  return true;
}

// Runs an operator on quantized numbers if it only moves its data, or finds the greatest of them.
bool Runner::run_moved(const Node& node) {
  static constexpr std::string_view kOps[] = {"DepthToSpace",
                                              "Expand",
                                              "Flatten",
                                              "Gather",
                                              "GlobalMaxPool",
                                              "MaxPool",
                                              "Reshape",
                                              "Slice",
                                              "SpaceToDepth",
                                              "Split",
                                              "Squeeze",
                                              "Tile",
                                              "Transpose",
                                              "Unsqueeze"};
  const bool nearest =
      node.op == "Resize" && OpCall{graph_, node}.text("mode", "nearest") == "nearest";
  if (!nearest && std::ranges::find(kOps, node.op) == std::end(kOps)) return false;
  if (node.op == "MaxPool" && node.outputs.size() > 1) return false;
  const std::optional<Quantized> x = tensor_operand(node, 0);
  if (!x || !(scale_of(x->steps) > 0)) return false;
  Node moved = node;
  moved.inputs[0] = x->q;
  for (ValueId& id : moved.outputs) id = new_value(at(id).name);
  emit(moved);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    std::vector<ValueId> inputs = {moved.outputs[i], flat(x->steps.scale)};
    if (x->steps.zero.valid()) inputs.push_back(flat(x->steps.zero));
    const Node back{"Dequantize", node.name, inputs, {node.outputs[i]}, {}};
    emit(back);
    note(back);
  }
  return true;
}

// The codes of a weight are made here. Data that were dequantized from the same steps have their
// codes already.
bool Runner::run_quantize(const Node& node) {
  if (is_constant_call(graph_, node)) {
    graph_[node.outputs[0]].constant = evaluate_constant_node(graph_, node)[0];
    return true;
  }
  if (node.inputs.size() < 2 || !is_known(node.inputs[1])) return false;
  const std::optional<Quantized> x = tensor_operand(node, 0);
  const Steps steps{node.inputs[1], node.inputs.size() > 2 ? node.inputs[2] : ValueId{}};
  if (!x || (steps.zero.valid() && !is_known(steps.zero)) || !is_of_one_scale(steps)) return false;
  if (at(x->q).dtype != at(node.outputs[0]).dtype || !equal(x->steps, steps)) return false;
  emit({"Identity", node.name, {x->q}, node.outputs, {}});
  return true;
}

void Runner::note(const Node& node) {
  if (node.op != "Dequantize") return;
  const Steps steps{node.inputs[1], node.inputs.size() > 2 ? node.inputs[2] : ValueId{}};
  if (!is_known(steps.scale) || (steps.zero.valid() && !is_known(steps.zero))) return;
  dequantized_[node.outputs[0]] = {node.inputs[0], steps};
}

bool Runner::run_node(const Node& node) {
  struct Rule {
    bool (Runner::*run)(const Node&);
    bool rounds_otherwise;  // than the same operators node by node
  };
  // The order of a contraction's sum is open; the other operators that keep to ONNX round at the
  // same places as node by node.
  static const std::map<std::string, Rule> kRules = {
      {"Add", {&Runner::run_binary, true}},
      {"AveragePool", {&Runner::run_unary, true}},
      {"Concat", {&Runner::run_concat, false}},
      {"Conv", {&Runner::run_conv, false}},
      {"Gemm", {&Runner::run_gemm, false}},
      {"GlobalAveragePool", {&Runner::run_unary, true}},
      {"LeakyRelu", {&Runner::run_unary, false}},
      {"MatMul", {&Runner::run_matmul, false}},
      {"Mul", {&Runner::run_binary, true}},
      {"Quantize", {&Runner::run_quantize, false}},
      {"Sigmoid", {&Runner::run_unary, false}},
      {"Softmax", {&Runner::run_unary, true}},
  };
  const auto rule = kRules.find(node.op);
  if (rule == kRules.end()) return run_moved(node);
  if (rule->second.rounds_otherwise && numerics_ == Numerics::kOnnx) return false;
  return (this->*rule->second.run)(node);
}

Graph Runner::run() && {
  for (size_t i = 0; i < old_.size(); ++i) {
    if (done_[i] || run_node(old_[i])) continue;
    note(old_[i]);
    graph_.nodes.push_back(old_[i]);
  }
  return remove_dead(std::move(graph_));
}

}  // namespace

Graph run_quantized(Graph graph, const PassOptions& options) {
  if (options.target.is_gpu() && options.precision != Precision::kInt8) return graph;
  const bool has_any =
      std::ranges::any_of(graph.nodes, [](const Node& node) { return node.op == "Dequantize"; });
  return has_any ? Runner(std::move(graph), options.numerics).run() : std::move(graph);
}

}  // namespace pruner
