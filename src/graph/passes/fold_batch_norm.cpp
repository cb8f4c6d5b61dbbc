// A batch norm (or any per-channel multiply and add by constants) goes into the weights and bias of
// the convolution before it; elsewhere a run of them becomes one multiply and one add.
//
// Each scaled weight is rounded once. In float32 the convolution's result is then off by at most
// 2^-24 of the sum of |weight| |data|. This is less than the sum's own bound, since the order of a
// convolution's terms is open. A run of multiplies and adds rounds at each of them. As one multiply
// and one add, by factors that were multiplied in double precision, it rounds twice, and each
// factor once. If an operator that jumps reads the result, such a run stays as it is.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "graph/folded_constants.h"
#include "graph/passes.h"
#include "graph/rewriter.h"
#include "graph/step_readers.h"

namespace pruner {

namespace {

// x * scale + shift, one element a channel (dimension 1).
struct ScaleShift {
  std::vector<double> scale, shift;
};

}  // namespace

static std::vector<double> elements(const Tensor& tensor) {
  std::vector<double> values(static_cast<size_t>(tensor.num_elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = tensor.get(static_cast<int64_t>(i));
  return values;
}

// Returns the elements of a constant that differs along the channels of `data` alone, one a
// channel.
static std::optional<std::vector<double>> per_channel(const Rewriter& r, ValueId id, ValueId data) {
  const std::vector<int64_t>& shape = r[data].shape;
  const std::optional<Tensor>& tensor = r[id].constant;
  if (!tensor || shape.size() < 2 || tensor->shape().size() > shape.size()) return std::nullopt;
  std::vector<int64_t> aligned(shape.size() - tensor->shape().size(), 1);
  aligned.insert(aligned.end(), tensor->shape().begin(), tensor->shape().end());
  const int64_t n = std::exchange(aligned[1], 1);
  if (element_count(aligned) != 1 || (n != 1 && n != shape[1])) return std::nullopt;
  std::vector<double> values = elements(*tensor);
  values.resize(static_cast<size_t>(shape[1]), values[0]);
  return values;
}

// Returns the factors and shifts by which a BatchNormalization, Mul or Add node changes `data`, and
// sets `data` to the operand that is no constant.
static std::optional<ScaleShift> affine_of(const Rewriter& r, const Node& node, ValueId& data) {
  if (node.op == "BatchNormalization") {
    data = node.inputs[0];
    for (size_t i = 1; i < 5; ++i) {
      if (!r[node.inputs[i]].constant) return std::nullopt;
    }
    const auto input = [&](size_t i) { return elements(*r[node.inputs[i]].constant); };
    // ONNX: (x - mean) / sqrt(variance + epsilon) * scale + bias.
    ScaleShift a{input(1), input(2)};
    const std::vector<double> mean = input(3), variance = input(4);
    const double epsilon = OpCall{r.graph(), node}.number("epsilon", 1e-5);
    for (size_t c = 0; c < a.scale.size(); ++c) {
      a.scale[c] /= std::sqrt(variance[c] + epsilon);
      a.shift[c] -= mean[c] * a.scale[c];
    }
    return a;
  }
  if ((node.op != "Mul" && node.op != "Add") || !is_float(r[node.outputs[0]].dtype))
    return std::nullopt;
  const size_t c = r[node.inputs[0]].constant ? 0 : 1;
  data = node.inputs[1 - c];
  if (r[data].constant || r[data].shape != r[node.outputs[0]].shape) return std::nullopt;
  const std::optional<std::vector<double>> values = per_channel(r, node.inputs[c], data);
  if (!values) return std::nullopt;
  const std::vector<double> zeros(values->size(), 0), ones(values->size(), 1);
  return node.op == "Mul" ? ScaleShift{*values, zeros} : ScaleShift{ones, *values};
}

// Returns (x * s1 + t1) * s2 + t2 as one factor and shift.
static ScaleShift after(const ScaleShift& first, const ScaleShift& second) {
  ScaleShift both = first;
  for (size_t c = 0; c < both.scale.size(); ++c) {
    both.scale[c] *= second.scale[c];
    both.shift[c] = first.shift[c] * second.scale[c] + second.shift[c];
  }
  return both;
}

static Tensor float_tensor(std::span<const double> values,
                           std::vector<int64_t> shape,
                           DType dtype) {
  Tensor tensor(dtype, std::move(shape));
  for (size_t i = 0; i < values.size(); ++i) tensor.set(static_cast<int64_t>(i), values[i]);
  return tensor;
}

// Returns the weight with scaled channels; a channel is a run of elements in each of the `outer`
// blocks.
static Tensor scaled_weight(const Rewriter& r,
                            const Tensor& weight,
                            int64_t outer,
                            const std::vector<double>& scale) {
  const auto make = [&]() -> std::vector<Tensor> {
    Tensor scaled = weight.clone();
    const auto channels = std::ssize(scale);
    const int64_t run = scaled.num_elements() / outer / channels;
    for (int64_t block = 0; block < outer * channels; ++block) {
      const double factor = scale[block % channels];
      for (int64_t i = block * run; i < (block + 1) * run; ++i)
        scaled.set(i, scaled.get(i) * factor);
    }
    return {std::move(scaled)};
  };
  if (r.graph().folded == nullptr) return make()[0];
  std::string operation = fmt::format("scaled in {} blocks by ", outer);
  operation.append(reinterpret_cast<const char*>(scale.data()), scale.size() * sizeof(double));
  return r.graph().folded->make(operation, std::span(&weight, 1), make)[0];
}

// Returns the convolution with `a` in its weight and bias; nothing if its operands are no
// constants.
static std::optional<Node> with_affine(Rewriter& r, const Node& conv, const ScaleShift& a) {
  const bool transposed = conv.op == "ConvTranspose";
  if (!transposed && conv.op != "Conv") return std::nullopt;
  if (OpCall{r.graph(), conv}.sums()) return std::nullopt;  // integer weights stay as they are
  const std::optional<Tensor>& weight = r[conv.inputs[1]].constant;
  const bool has_bias = conv.inputs.size() > 2;
  if (!weight || (has_bias && !r[conv.inputs[2]].constant)) return std::nullopt;
  const auto channels = static_cast<int64_t>(a.scale.size());
  const int64_t outer = transposed ? weight->shape()[0] : 1;  // [ci, co, k...] or [co, ci, k...]
  if (transposed && weight->shape()[1] != channels) return std::nullopt;  // grouped
  Tensor scaled = scaled_weight(r, *weight, outer, a.scale);
  std::vector<double> bias = a.shift;
  for (size_t c = 0; has_bias && c < bias.size(); ++c) {
    bias[c] += r[conv.inputs[2]].constant->get(static_cast<int64_t>(c)) * a.scale[c];
  }
  Node folded = conv;
  const DType dtype = weight->dtype();
  folded.inputs.resize(3);
  folded.inputs[1] = r.add_constant(r[conv.inputs[1]].name, std::move(scaled));
  folded.inputs[2] = r.add_constant(conv.name + "/bias", float_tensor(bias, {channels}, dtype));
  return folded;
}

static bool any_not(const std::vector<double>& values, double neutral) {
  return std::any_of(values.begin(), values.end(), [&](double v) { return v != neutral; });
}

// Sets `data` to the value before its multiplies and adds, and returns those together with `outer`.
static ScaleShift take_affine(const Rewriter& r, ValueId& data, ScaleShift outer) {
  while (const Node* node = r.producer(data)) {
    ValueId inner;
    const std::optional<ScaleShift> a = affine_of(r, *node, inner);
    if (!a) break;
    outer = after(*a, outer);
    data = inner;
  }
  return outer;
}

Graph fold_batch_norm(Graph graph) {
  const std::vector<bool> by_steps = read_by_steps(graph);
  Rewriter r(std::move(graph));
  for (Node& node : r.take_nodes()) {
    const Node old = node;
    for (ValueId& id : node.inputs) id = r.current(id);
    ValueId data;
    std::optional<ScaleShift> a = affine_of(r, node, data);
    if (!a) {
      r.emit(std::move(node));
      continue;
    }
    const size_t at = node.inputs[0] == data ? 0 : 1;
    const Node* before = r.producer(data);
    if (before != nullptr && r.uses(old.inputs[at]) == 1) {
      if (std::optional<Node> folded = with_affine(r, *before, *a)) {
        folded->outputs = node.outputs;
        r.emit(std::move(*folded));
        continue;
      }
    }
    if (by_steps[static_cast<size_t>(node.outputs[0].value)]) {
      r.emit(std::move(node));
      continue;
    }
    const ValueId direct = data;
    *a = take_affine(r, data, *a);
    if (data == direct && node.op != "BatchNormalization") {
      r.emit(std::move(node));
      continue;
    }
    std::vector<int64_t> shape(r[data].shape.size() - 1, 1);
    shape[0] = static_cast<int64_t>(a->scale.size());
    const DType dtype = r[data].dtype;
    const auto constant = [&](const std::vector<double>& values) {
      return r.add_constant(node.name + "/affine", float_tensor(values, shape, dtype));
    };
    if (any_not(a->scale, 1)) data = r.add("Mul", {data, constant(a->scale)}, {}, node.name);
    if (any_not(a->shift, 0)) data = r.add("Add", {data, constant(a->shift)}, {}, node.name);
    r.replace(node.outputs[0], data);
  }
  return r.finish();
}

}  // namespace pruner
