// Many spellings of one thing become one, so that later passes know few operators.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "graph/passes.h"
#include "graph/rewriter.h"
#include "graph/step_readers.h"

namespace pruner {

// Whether the node's output is its first input again, whatever the values.
static bool is_identity(const Rewriter& r, const Node& node) {
  const auto among = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, node.op) != names.end();
  };
  if (node.op == "Identity") return true;
  const Value &in = r[r.current(node.inputs[0])], &out = r[node.outputs[0]];
  if (in.shape != out.shape || in.dtype != out.dtype) return false;
  if (r.graph().keeps_all() && among({"Expand", "Pad", "Slice", "Tile"})) return false;
  if (node.op == "Slice") {  // a reversal keeps the shape
    if (node.inputs.size() < 5) return true;
    const std::optional<Tensor>& steps = r[r.current(node.inputs[4])].constant;
    for (int64_t i = 0; i < steps->num_elements(); ++i) {
      if (steps->get_int(i) != 1) return false;
    }
    return true;
  }
  if (node.op == "Pad") {  // a Pad may cut as much as it adds
    const std::optional<Tensor>& pads = r[r.current(node.inputs[1])].constant;
    for (int64_t i = 0; i < pads->num_elements(); ++i) {
      if (pads->get_int(i) != 0) return false;
    }
    return true;
  }
  if (node.op == "Transpose") {
    const std::vector<int64_t> order = OpCall{r.graph(), node}.integers("perm");
    return !order.empty() && std::is_sorted(order.begin(), order.end());
  }
  const bool one_input = node.inputs.size() == 1;
  const bool may_be =
      among({"Cast", "Expand", "Pad", "Slice", "Tile", "Reshape", "Sum", "Max", "Min", "Concat"});
  return may_be && (one_input || node.op == "Expand" || node.op == "Tile" || node.op == "Reshape");
}

// Returns `data` reshaped. A reshape that parts the first dimension comes before a transpose of the
// other two dimensions: torch transposes a batch of heads as one dimension.
static ValueId reshaped(Rewriter& r, ValueId data, std::vector<int64_t> shape) {
  const Node* transpose = r.producer(data, "Transpose");
  const std::vector<int64_t> of = r[data].shape;
  const bool parts_first =
      transpose != nullptr && shape.size() > 3 &&
      OpCall{r.graph(), *transpose}.integers("perm") == std::vector<int64_t>{0, 2, 1} &&
      std::equal(of.end() - 2, of.end(), shape.end() - 2);
  if (!parts_first) return r.add_reshape(data, shape);
  const ValueId source = transpose->inputs[0];
  std::vector<int64_t> order(shape.size());
  std::iota(order.begin(), order.end(), 0);
  std::swap(shape.end()[-1], shape.end()[-2]);
  std::swap(order.end()[-1], order.end()[-2]);
  return r.add_transpose(r.add_reshape(source, shape), order);
}

// Replaces a Split by one Slice for each part.
static void emit_slices(Rewriter& r, const Node& node) {
  const ValueId data = r.current(node.inputs[0]);
  const OpCall call{r.graph(), node};
  const auto rank = static_cast<int64_t>(r[data].shape.size());
  const int64_t axis = *call.axis("axis", 0, rank);
  int64_t start = 0;
  for (const ValueId part : node.outputs) {
    const int64_t end = start + r[part].shape[axis];
    r.replace(part, r.add_slice(data, axis, {{start}}, {{end}}, r[part].name));
    start = end;
  }
}

// Emits a node for each output that is read, since a kernel makes one output. The values of a TopK
// are gathered by its indices, if these are read, so that the indices are found once.
static void emit_outputs(Rewriter& r, const Node& node) {
  for (size_t i = node.outputs.size(); i-- > 0;) {
    if (r.uses(node.outputs[i]) == 0 || r[node.outputs[i]].constant) continue;
    if (node.op == "TopK" && i == 0 && r.uses(node.outputs[1]) > 0) {
      const std::map<std::string, Attribute> axis = {
          {"axis", OpCall{r.graph(), node}.integer("axis", -1)}};
      const std::string name = r[node.outputs[0]].name;
      r.replace(node.outputs[0],
                r.add("GatherElements", {node.inputs[0], node.outputs[1]}, axis, name));
      continue;
    }
    Node one = node;
    one.outputs = {node.outputs[i]};
    one.first_output += static_cast<int>(i);
    r.emit(std::move(one));
  }
}

// Emits a chain of binary nodes for a node of several inputs.
static void emit_chain(Rewriter& r, const Node& node) {
  ValueId result = r.current(node.inputs[0]);
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    const std::string op = node.op == "Sum" ? "Add" : node.op;
    result = r.add(op, {result, r.current(node.inputs[i])}, {}, node.name);
  }
  r.replace(node.outputs[0], result);
}

// A Pad before a convolution with what this pads with becomes the convolution's own padding.
static void absorb_pad(Rewriter& r, Node& conv) {
  const Node* pad = r.producer(r.current(conv.inputs[0]));
  if (pad == nullptr || pad->op != "Pad" || pad->inputs.size() > 3) return;
  const OpCall call{r.graph(), *pad}, window{r.graph(), conv};
  if (call.text("mode", "constant") != "constant" ||
      window.text("auto_pad", "NOTSET") != "NOTSET") {
    return;
  }
  if ((call.has(2) ? call.scalar(2) : 0.0) != window.integer("pad_value", 0)) return;
  // `more` has all starts and then all ends; the first two of each belong to batch and channels.
  const std::vector<int64_t> more = *call.constant_integers(1, "pads");
  const size_t rank = more.size() / 2, dims = rank - 2;
  for (size_t i = 0; i < more.size(); ++i) {
    if (more[i] < 0 || (i % rank < 2 && more[i] != 0)) return;
  }
  std::vector<int64_t> pads = window.integers("pads");
  if (pads.empty()) pads.assign(2 * dims, 0);
  for (size_t d = 0; d < dims; ++d) {
    pads[d] += more[d + 2];
    pads[dims + d] += more[rank + d + 2];
  }
  conv.attributes["pads"] = pads;
  conv.inputs[0] = pad->inputs[0];
}

// A division by a constant is a multiplication by its inverse. The product by a power of two is the
// quotient. Any other product rounds twice, and a quotient once. The product is at most 1.5 units
// of the last place from the exact quotient, not 0.5. The division stays if the inverse is no
// normal number, or if the node asks for the last digit (exact, an attribute of ours). It also
// stays if an operator that jumps reads it: floor(82 / 41) is 2, floor(82 * (1 / 41)) is 1.
static void multiply_instead(Rewriter& r, Node& div, bool read_by_step) {
  const std::optional<Tensor>& divisor = r[div.inputs[1]].constant;
  if (!divisor || !is_float(divisor->dtype()) || r[div.inputs[0]].constant) return;
  const bool rounds = OpCall{r.graph(), div}.integer("exact", 0) != 0 || read_by_step;
  const double most = greatest_float(divisor->dtype());
  Tensor factor = divisor->clone();
  for (int64_t i = 0; i < factor.num_elements(); ++i) {
    const double by = factor.get(i), inverse = 1 / by;
    int exponent = 0;
    if (rounds && std::abs(std::frexp(by, &exponent)) != 0.5) return;
    // The least normal number is about 4 / most.
    if (!(std::abs(inverse) <= most && std::abs(inverse) >= 8 / most)) return;
    factor.set(i, inverse);
  }
  div.op = "Mul";
  div.attributes.erase("exact");
  div.inputs[1] = r.add_constant(div.name + "/factor", std::move(factor));
}

// Has a kernel compute a constant whose values differ from shape to shape. A Range becomes numbers
// from 0 on, which no shape changes, times the step and plus the start; a ConstantOfShape becomes
// one number, repeated.
static void compute_constant(Rewriter& r, Node& node) {
  const Value made = r[node.outputs[0]];
  const std::string& name = made.name;
  if (node.op == "ConstantOfShape") {
    const auto value = node.attributes.find("value");
    const Tensor number =
        value == node.attributes.end() ? Tensor(made.dtype, {1}) : std::get<Tensor>(value->second);
    node = {"Expand",
            node.name,
            {r.add_constant(name + "/number", number), node.inputs[0]},
            node.outputs,
            {}};
    return;
  }
  Tensor numbers(made.dtype, made.shape);
  for (int64_t i = 0; i < numbers.num_elements(); ++i) numbers.set(i, static_cast<double>(i));
  const ValueId steps =
      r.add("Mul", {r.add_constant(name + "/numbers", numbers), node.inputs[2]}, {}, name);
  node = {"Add", node.name, {steps, node.inputs[0]}, node.outputs, {}};
}

// Multiplies a constant bias by Gemm's beta; the product is rounded as it would be at run time.
static void fold_beta(Rewriter& r, Node& gemm) {
  const OpCall call{r.graph(), gemm};
  const double beta = call.number("beta", 1);
  if (beta == 1 || !call.has(2) || !r[r.current(gemm.inputs[2])].constant) return;
  Tensor scaled = r[r.current(gemm.inputs[2])].constant->clone();
  for (int64_t i = 0; i < scaled.num_elements(); ++i) scaled.set(i, beta * scaled.get(i));
  gemm.inputs[2] = r.add_constant(gemm.name + "/bias", std::move(scaled));
  gemm.attributes.erase("beta");
}

// Leaves out inputs without elements. Not all inputs are empty, or the result would be known.
static void leave_out_empty(const Rewriter& r, Node& concat) {
  std::erase_if(concat.inputs, [&](ValueId id) { return element_count(r[id].shape) == 0; });
}

// Whether the node is a Scatter that writes nothing over its data.
static bool scatters_nothing(const Rewriter& r, const Node& node) {
  return node.op.starts_with("Scatter") && element_count(r[node.inputs[1]].shape) == 0;
}

Graph simplify(Graph graph) {
  const std::vector<bool> by_steps = read_by_steps(graph);
  Rewriter r(std::move(graph));
  for (Node& node : r.take_nodes()) {
    const bool only_known = std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) {
      return r[id].constant.has_value();
    });
    if (only_known) continue;
    for (ValueId& id : node.inputs) id = r.current(id);
    if (node.op == "Concat") leave_out_empty(r, node);
    if (!node.inputs.empty() && (is_identity(r, node) || scatters_nothing(r, node))) {
      r.replace(node.outputs[0], node.inputs[0]);
    } else if (node.op == "Flatten" || node.op == "Squeeze" || node.op == "Unsqueeze" ||
               node.op == "Reshape") {
      const std::vector<int64_t> shape = r[node.outputs[0]].shape;
      r.replace(node.outputs[0], reshaped(r, node.inputs[0], shape));
    } else if (node.op == "Split") {
      emit_slices(r, node);
    } else if (node.outputs.size() > 1) {
      emit_outputs(r, node);
    } else if (node.op == "Sum" ||
               ((node.op == "Max" || node.op == "Min") && node.inputs.size() > 2)) {
      emit_chain(r, node);
    } else {
      if (node.op == "Conv") absorb_pad(r, node);
      if (node.op == "Div")
        multiply_instead(r, node, by_steps[static_cast<size_t>(node.outputs[0].value)]);
      if (node.op == "Gemm") fold_beta(r, node);
      if ((node.op == "Range" || node.op == "ConstantOfShape") &&
          r.graph().is_computed(r[node.outputs[0]]))
        compute_constant(r, node);
      r.emit(std::move(node));
    }
  }
  return r.finish();
}

}  // namespace pruner
