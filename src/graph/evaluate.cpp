#include "graph/evaluate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>

#include "graph/folded_constants.h"
#include "graph/ops/op.h"
#include "graph/partition.h"
#include "support/check.h"
#include "tensor/interpreter.h"
#include "tensor/pack.h"

namespace pruner {

static constexpr int64_t kSmall = 4096;                        // elements evaluated while inferring
static constexpr int64_t kLargest = int64_t{1} << 36;          // elements of one tensor
static constexpr int64_t kLargestConstant = int64_t{1} << 30;  // elements of one constant
static constexpr int64_t kLargestMade = int64_t{1} << 28;      // elements, if made of far fewer

std::string node_label(const Graph& graph, const Node& node) {
  if (!node.name.empty()) return "node \"" + node.name + "\"";
  const std::string made = node.outputs.empty() ? "" : graph[node.outputs[0]].name;
  return "node " + node.op + " that makes \"" + made + "\"";
}

bool is_of_pipeline(const Node& node) {
  return node.op == kFound || node.op == kExtent || is_loop_node(node);
}

bool is_true(const std::optional<Tensor>& constant) {
  return constant && constant->num_elements() == 1 && constant->get(0) != 0;
}

// Shape and Size need no values, the others of kConstant need all.
bool is_constant_call(const Graph& graph, const Node& node) {
  const auto is_computed = [&](ValueId id) { return graph.is_computed(graph[id]); };
  if (is_of_pipeline(node) || std::ranges::any_of(node.outputs, is_computed)) return false;
  if (node.op == "Shape" || node.op == "Size") return true;
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
    return !id.valid() || graph[id].constant.has_value();
  });
}

bool is_tensor_shape(std::span<const int64_t> shape) {
  int64_t elements = 1;
  for (const int64_t extent : shape) {
    if (extent < 0 || (extent > 0 && elements > kLargest / extent)) return false;
    elements *= std::max<int64_t>(extent, 1);
  }
  return true;
}

// Returns the element that an operator makes of data without elements; nullopt: none is defined.
// ONNX leaves the mean open. For integers, infinity stands for the greatest or least of the type.
static std::optional<double> of_nothing(const OpCall& call) {
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  static const std::map<std::string_view, double> kValues = {
      {"MatMul", 0},
      {"ReduceL1", 0},
      {"ReduceL2", 0},
      {"ReduceLogSum", -kInfinity},
      {"ReduceLogSumExp", -kInfinity},
      {"ReduceMax", -kInfinity},
      {"ReduceMean", std::numeric_limits<double>::quiet_NaN()},
      {"ReduceMin", kInfinity},
      {"ReduceProd", 1},
      {"ReduceSum", 0},
      {"ReduceSumSquare", 0},
  };
  const std::string& op = call.node.op;
  if (op == "Gemm" && !call.has(2)) return 0;
  if (op == "Pad" && call.text("mode", "constant") == "constant")
    return call.has(2) ? call.scalar(2) : 0;
  const auto it = kValues.find(op);
  return it == kValues.end() ? std::nullopt : std::optional(it->second);
}

// A value without elements is known, and so is what is made of one alone. No kernel ever sees one:
// only Concat has other inputs beside it, and leaves it out.
static Result<Unit> infer_empty(const OpCall& call, const GraphOp& op, Value& value) {
  const int64_t elements = element_count(value.shape);
  if (elements == 0) {
    value.constant = Tensor(value.dtype, value.shape);
    return Unit{};
  }
  const bool computed = op.fusion != Fusion::kAlias && op.fusion != Fusion::kConstant;
  if (!computed || !call.has(0) || op.name == "Concat" || element_count(call.shape(0)) > 0)
    return Unit{};
  const std::optional<double> element = of_nothing(call);
  if (!element && call.graph.never_run) return Unit{};
  if (!element || elements > kLargestConstant)
    return Error("input 0 has no elements: ", print_shape(call.shape(0)));
  value.constant = Tensor(value.dtype, value.shape);
  const bool bound = std::isinf(*element) && !is_float(value.dtype);
  for (int64_t i = 0; i < elements; ++i) {
    if (bound) {
      value.constant->set_int(i, *element > 0 ? greatest_int(value.dtype) : least_int(value.dtype));
    } else {
      value.constant->set(i, *element);
    }
  }
  return Unit{};
}

// Checks the input types. An operator that only moves its elements takes every type.
static Result<Unit> check_codes(const Graph& graph, const Node& node, const GraphOp& op) {
  if (op.only_moves() || op.is(kTakesCodes)) return Unit{};
  for (const ValueId id : node.inputs) {
    if (!id.valid() || !is_only_moved(graph[id].dtype)) continue;
    return Error(node.op, " of ", dtype_name(graph[id].dtype), ", which is only moved and cast");
  }
  return Unit{};
}

// An error if the call's indices are a constant of which an element is no place.
static Result<Unit> check_constant_indices(const OpCall& call) {
  const ValueId id = indices_of(call.node);
  if (!id.valid() || !call.graph[id].constant) return Unit{};
  const std::optional<IndexOutside> found = index_outside(call, *call.graph[id].constant);
  if (!found) return Unit{};
  return Error("index ", found->index, " is outside an extent of ", found->extent);
}

// Elements that a constant made by the node may have: a few numbers in a file make no gigabytes.
static int64_t largest_constant(const Graph& graph, const Node& node) {
  constexpr int64_t kMostGrowth = 16;
  int64_t elements = node.op == "Constant" ? kLargestConstant : 0;
  for (const ValueId id : node.inputs)
    if (id.valid()) elements = std::max(elements, element_count(graph[id].shape));
  if (elements >= kLargestConstant / kMostGrowth) return kLargestConstant;
  return std::max(kLargestMade, kMostGrowth * elements);
}

static Result<Unit> infer(Graph& graph, Node& node) {
  const GraphOp* op = find_graph_op(node.op);
  if (op == nullptr) return Error("operator ", node.op, " is not supported");
  TRY(check_call(node, op->attributes, op->min_inputs, op->max_inputs));
  TRY(check_codes(graph, node, *op));
  const OpCall call{graph, node};
  TRY_ASSIGN(const std::vector<TensorType> types, op->infer(call));
  TRY(check_constant_indices(call));
  const auto first = static_cast<size_t>(node.first_output);
  if (first + node.outputs.size() > types.size()) {
    return Error("output ", types.size(), " of ", node.op, " is not supported");
  }
  const bool constant = is_constant_call(graph, node);
  bool small = true, known = true;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const TensorType& type = types[first + i];
    if (!is_tensor_shape(type.shape))
      return Error("the output would have the shape ", print_shape(type.shape));
    Value& value = graph[node.outputs[i]];
    value.dtype = type.dtype;
    value.shape = type.shape;
    TRY(infer_empty(call, *op, value));
    const int64_t elements = element_count(value.shape);
    small &= elements <= kSmall;
    known &= value.constant.has_value();
    if (constant && elements > largest_constant(graph, node)) {
      return Error("the constant would have the shape ",
                   print_shape(value.shape),
                   ", expected at most ",
                   largest_constant(graph, node),
                   " elements");
    }
  }
  // A view and a Constant share bytes that are there already, however many.
  const bool cheap = op->fusion == Fusion::kAlias || node.op == "Constant";
  if (known || !constant || !(small || cheap)) return Unit{};
  std::vector<Tensor> tensors = evaluate_constant_node(graph, node);
  for (size_t i = 0; i < tensors.size(); ++i)
    graph[node.outputs[i]].constant = std::move(tensors[i]);
  return Unit{};
}

Result<Unit> infer_node(Graph& graph, Node& node) {
  const Result<Unit> result = infer(graph, node);
  if (result.ok()) return result;
  return Error(node_label(graph, node), ": ", result.error().message());
}

// A value that the node reads twice is one placeholder.
LoweredCall lower_call(const OpCall& call) {
  LoweredCall lowered;
  DagBuilder dag;
  std::map<ValueId, StageId> stages;
  StageSink to{dag, [&](const OpCall&, size_t i) {
                 const Value& value = call.input(i);
                 const auto [it, fresh] = stages.try_emplace(call.node.inputs[i]);
                 if (fresh) {
                   it->second = dag.placeholder(
                       "placeholder", value.shape, value.dtype, value.constant.has_value());
                   lowered.inputs.push_back(call.node.inputs[i]);
                 }
                 return it->second;
               }};
  const GraphOp* op = find_graph_op(call.node.op);
  CHECK(op != nullptr && op->lower != nullptr) << call.node.op;
  const StageId out = op->lower(call, to);
  lowered.dag = dag.finish({out});
  return lowered;
}

// Whether each index that the node reads at lies in the tensor.
static Result<Unit> check_indices(const Graph& graph,
                                  const Node& node,
                                  std::span<const Tensor> inputs) {
  const ValueId id = indices_of(node);
  if (!id.valid() || element_count(graph[node.outputs[0]].shape) == 0) return Unit{};
  const IndexInput& indices = *find_graph_op(node.op)->indices;
  const std::optional<IndexOutside> found = index_outside({graph, node}, inputs[indices.place]);
  if (!found) return Unit{};
  return Error(node_label(graph, node),
               ": \"",
               graph[id].name,
               "\" holds the index ",
               found->index,
               ", expected one in [",
               indices.from_end ? -found->extent : 0,
               ", ",
               found->extent - 1,
               "]");
}

std::vector<Tensor> evaluate_node(const Graph& graph,
                                  const Node& node,
                                  std::span<const Tensor> inputs) {
  const GraphOp* op = find_graph_op(node.op);
  CHECK(op != nullptr) << node.op;
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const OpCall call{graph, node, i};
    const Value& value = call.output();
    if (value.constant) {
      outputs.push_back(*value.constant);
    } else if (op->fusion == Fusion::kAlias) {
      outputs.push_back(inputs[0].reshaped(value.shape));
    } else if (op->fusion == Fusion::kConstant) {
      outputs.push_back(evaluate_constant(call));
    } else if (node.op == "Transpose" && call.has_attribute("perm")) {
      outputs.push_back(permuted(inputs[0], call.integers("perm")));
    } else if (op->routine != nullptr) {
      outputs.push_back(run_routine(call, inputs));
    } else {
      const LoweredCall lowered = lower_call(call);
      std::vector<Tensor> tensors;
      for (const ValueId id : lowered.inputs) {
        const auto at = std::find(node.inputs.begin(), node.inputs.end(), id);
        tensors.push_back(inputs[at - node.inputs.begin()]);
      }
      outputs.push_back(interpret(lowered.dag, tensors)[0]);
    }
  }
  return outputs;
}

static Tensor concatenated(std::span<const Tensor> parts, const TensorType& type, size_t axis) {
  Tensor whole(type.dtype, type.shape);
  const std::span<const int64_t> shape = type.shape;
  const int64_t rows = element_count(shape.first(axis));
  const int64_t below = element_count(shape.subspan(axis + 1)) * dtype_bytes(type.dtype);
  auto* to = static_cast<std::byte*>(whole.data());
  for (int64_t row = 0; row < rows; ++row) {
    for (const Tensor& part : parts) {
      const int64_t bytes = part.shape()[axis] * below;
      std::memcpy(to, static_cast<const std::byte*>(part.data()) + row * bytes, bytes);
      to += bytes;
    }
  }
  return whole;
}

static Tensor dequantized_blocks(const OpCall& call, std::span<const Tensor> inputs) {
  const Tensor &codes = inputs[0], &scales = inputs[1], &zeros = inputs[2];
  const std::span<const int64_t> shape = codes.shape();
  const auto axis = static_cast<size_t>(*call.axis("axis", 0, std::ssize(shape)));
  const int64_t block = call.integer("block_size", 0), blocks = scales.shape()[axis];
  const int64_t run = element_count(shape.subspan(axis + 1));
  Tensor reals(DType::kFloat32, codes.shape());
  const std::span<float> out = reals.values<float>();
  for (int64_t i = 0; i < codes.num_elements(); ++i) {
    const int64_t row = i / run, along = row % shape[axis];
    const int64_t at = (row / shape[axis] * blocks + along / block) * run + i % run;
    auto real = static_cast<float>(codes.get_int(i));
    if (zeros.num_elements() > 0) real -= static_cast<float>(zeros.get(at));
    out[static_cast<size_t>(i)] = real * static_cast<float>(scales.get(at));
  }
  return reals;
}

// Evaluates operators that are applied to weights without the interpreter, since a network may
// have hundreds of millions of weights.
static std::optional<Tensor> fold_weights(const OpCall& call, std::span<const Tensor> inputs) {
  const Value& to = call.output();
  const auto is_short = [](DType type) { return is_float(type) && type != DType::kFloat64; };
  if (call.node.op == "Cast" && is_short(to.dtype) && is_short(inputs[0].dtype()))
    return rounded_to(to.dtype, inputs[0]);
  if (call.node.op == "DequantizeBlocks") {
    std::vector<Tensor> all(inputs.begin(), inputs.end());
    all.resize(3);
    return dequantized_blocks(call, all);
  }
  if (call.node.op != "Concat") return std::nullopt;
  const auto rank = static_cast<int64_t>(to.shape.size());
  return concatenated(inputs, {to.dtype, to.shape}, *call.axis("axis", 0, rank));
}

// Returns a node's operation as a text; nullopt if an attribute is a tensor.
static std::optional<std::string> operation_text(const Graph& graph, const Node& node) {
  std::string text = fmt::format("{} {}", node.op, node.first_output);
  for (const auto& [name, value] : node.attributes) {
    if (std::holds_alternative<Tensor>(value)) return std::nullopt;
    text += ", " + name + " ";
    std::visit(
        [&]<typename T>(const T& v) {
          if constexpr (std::is_same_v<T, std::string> || std::is_arithmetic_v<T>)
            text += fmt::format("{}", v);
          else if constexpr (!std::is_same_v<T, Tensor>)
            text += fmt::format("{}", fmt::join(v, " "));
        },
        value);
  }
  for (const ValueId id : node.inputs) text += id.valid() ? " +" : " -";
  for (const ValueId id : node.outputs)
    text += fmt::format(", {} {}", dtype_name(graph[id].dtype), fmt::join(graph[id].shape, "x"));
  return text;
}

std::vector<Tensor> evaluate_constant_node(const Graph& graph, const Node& node) {
  std::vector<Tensor> inputs(node.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (node.inputs[i].valid() && graph[node.inputs[i]].constant) {
      inputs[i] = *graph[node.inputs[i]].constant;
    }
  }
  const auto evaluate = [&]() -> std::vector<Tensor> {
    if (std::optional<Tensor> folded = fold_weights({graph, node}, inputs)) return {*folded};
    return evaluate_node(graph, node, inputs);
  };
  const bool small = std::ranges::all_of(
      node.outputs, [&](ValueId id) { return element_count(graph[id].shape) <= kSmall; });
  if (graph.folded == nullptr || small || is_alias(node.op)) return evaluate();
  const std::optional<std::string> operation = operation_text(graph, node);
  return operation ? graph.folded->make(*operation, inputs, evaluate) : evaluate();
}

template <typename T>
// Writes the result row by row. strides[d]: elements of `in` between neighbours along dimension d
// of the result.
static void permute(const T* in,
                    T* out,
                    std::span<const int64_t> extents,
                    std::span<const int64_t> strides) {
  const auto last = extents.size() - 1;
  std::vector<int64_t> index(extents.size(), 0);
  const int64_t rows = element_count(extents.first(last));
  int64_t offset = 0;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < extents[last]; ++i) *out++ = in[offset + i * strides[last]];
    for (size_t d = last; d-- > 0;) {
      offset += strides[d];
      if (++index[d] < extents[d]) break;
      offset -= strides[d] * extents[d];
      index[d] = 0;
    }
  }
}

Tensor permuted(const Tensor& tensor, std::span<const int64_t> order) {
  if (std::is_sorted(order.begin(), order.end())) return tensor;
  const std::vector<int64_t>& in = tensor.shape();
  std::vector<int64_t> in_strides(in.size(), 1), extents, strides;
  for (size_t d = in.size() - 1; d-- > 0;) in_strides[d] = in_strides[d + 1] * in[d + 1];
  for (const int64_t d : order) {
    extents.push_back(in[d]);
    strides.push_back(in_strides[d]);
  }
  Tensor out(tensor.dtype(), extents);
  if (out.num_elements() == 0) return out;
  const auto copy = [&]<typename T>(T) {
    permute(static_cast<const T*>(tensor.data()), static_cast<T*>(out.data()), extents, strides);
  };
  switch (dtype_bytes(tensor.dtype())) {
    case 8: copy(uint64_t{}); break;
    case 4: copy(uint32_t{}); break;
    case 2: copy(uint16_t{}); break;
    default: copy(uint8_t{});
  }
  return out;
}

Result<std::vector<Tensor>> interpret_graph(const Graph& graph, std::span<const Tensor> inputs) {
  if (inputs.size() != graph.inputs.size()) {
    return Error("the network takes ", graph.inputs.size(), " inputs, found ", inputs.size());
  }
  std::vector<Tensor> tensors(graph.values.size());
  std::vector<int> uses(graph.values.size(), 0);
  const auto slot = [](ValueId id) { return static_cast<size_t>(id.value); };
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& value = graph[graph.inputs[i]];
    if (inputs[i].shape() != value.shape || inputs[i].dtype() != value.dtype) {
      return Error("input \"",
                   value.name,
                   "\" is ",
                   dtype_name(inputs[i].dtype()),
                   " ",
                   print_shape(inputs[i].shape()),
                   ", expected ",
                   dtype_name(value.dtype),
                   " ",
                   print_shape(value.shape));
    }
    tensors[slot(graph.inputs[i])] = inputs[i];
  }
  const auto tensor_of = [&](ValueId id) {
    if (!id.valid()) return Tensor();
    return graph[id].constant ? *graph[id].constant : tensors[slot(id)];
  };
  for (const Node& node : graph.nodes) {
    for (const ValueId id : node.inputs) {
      if (id.valid()) ++uses[slot(id)];
    }
  }
  for (const ValueId id : graph.outputs) ++uses[slot(id)];
  for (const Node& node : graph.nodes) {
    std::vector<Tensor> operands;
    for (const ValueId id : node.inputs) operands.push_back(tensor_of(id));
    TRY(check_indices(graph, node, operands));
    std::vector<Tensor> made = evaluate_node(graph, node, operands);
    for (size_t i = 0; i < made.size(); ++i) tensors[slot(node.outputs[i])] = std::move(made[i]);
    for (const ValueId id : node.inputs) {
      // A tensor is let go after its last reader.
      if (id.valid() && --uses[slot(id)] == 0) tensors[slot(id)] = Tensor();
    }
  }
  std::vector<Tensor> outputs;
  for (const ValueId id : graph.outputs) outputs.push_back(tensor_of(id));
  return outputs;
}

}  // namespace pruner
