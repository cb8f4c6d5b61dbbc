#include "graph/held_operand.h"

#include <algorithm>

#include "graph/ops/window.h"
#include "target/attention_units.h"

namespace pruner {

bool holds_operands(const PassOptions& options) {
  return options.target.is_gpu() && options.narrow_type().has_value();
}

std::optional<HeldOperand> product_of(const OpCall& call) {
  if (call.node.op != "MatMul" && call.node.op != "Conv") return std::nullopt;
  const std::vector<int64_t>&data = call.shape(0), &result = call.output().shape;
  if (data.empty() || result.empty() || call.sums() || !call.input(1).constant) return std::nullopt;
  const int64_t terms = data.back(), columns = result.back();
  if (terms % 2 != 0 || element_count(call.shape(1)) != terms * columns) return std::nullopt;
  const bool matmul = call.node.op == "MatMul";
  if (matmul && call.integer("transA", 0) != 0) return std::nullopt;
  if (!matmul && (!channels_last(call) || call.integer("group", 1) != 1)) return std::nullopt;
  if (!std::equal(data.begin(), data.end() - 1, result.begin(), result.end() - 1))
    return std::nullopt;
  return HeldOperand{element_count(data) / terms, columns, terms};
}

bool normalizes_rows(const OpCall& call) {
  const std::string& op = call.node.op;
  if (op != "LayerNormalization" && op != "RMSNormalization") return false;
  const int64_t axis = call.integer("axis", -1);
  return axis == -1 || axis == call.rank() - 1;
}

bool may_hold(const OpCall& product, ValueId data, const PassOptions& options) {
  const std::optional<HeldOperand> held = product_of(product);
  return held && product.node.inputs[0] == data && may_hold_operand(*held, options.target.gpu);
}

static const Node* maker_of(const Graph& graph, ValueId id) {
  const auto maker =
      std::ranges::find_if(graph.nodes, [&](const Node& node) { return node.outputs[0] == id; });
  return maker == graph.nodes.end() ? nullptr : &*maker;
}

const Node* gate_of(const Graph& graph, const Readers& readers, const Node& node) {
  constexpr size_t kMostNodes = 8;  // nodes of the function of the gate
  const std::optional<HeldOperand> product = product_of({graph, node});
  const std::vector<size_t>& read = readers[static_cast<size_t>(node.outputs[0].value)];
  if (!product || node.op != "MatMul" || read.size() != 1 || read[0] == graph.nodes.size())
    return nullptr;
  const Node& multiplied = graph.nodes[read[0]];
  if (multiplied.op != "Mul" || multiplied.inputs[0] == multiplied.inputs[1]) return nullptr;
  // The nodes from the other factor up to one product.
  std::vector<ValueId> open = {multiplied.inputs[multiplied.inputs[0] == node.outputs[0] ? 1 : 0]};
  const Node* gate = nullptr;
  for (size_t i = 0; i < open.size(); ++i) {
    if (graph[open[i]].constant) continue;
    const Node* maker = maker_of(graph, open[i]);
    if (maker == nullptr || i == kMostNodes || graph[open[i]].shape != graph[node.outputs[0]].shape)
      return nullptr;
    if (maker->op == "MatMul") {
      if (gate != nullptr && gate != maker) return nullptr;
      gate = maker;
    } else if (find_graph_op(maker->op)->fusion <= Fusion::kBroadcast) {
      open.insert(open.end(), maker->inputs.begin(), maker->inputs.end());
    } else {
      return nullptr;
    }
  }
  if (gate == nullptr || gate->inputs[0] != node.inputs[0]) return nullptr;
  const std::optional<HeldOperand> other = product_of({graph, *gate});
  const bool alike =
      other && other->columns == product->columns &&
      OpCall{graph, *gate}.integer("transB", 0) == OpCall{graph, node}.integer("transB", 0);
  return alike ? gate : nullptr;
}

bool may_rotate(const OpCall& attention, const PassOptions& options) {
  if (attention.node.op != "FusedAttention") return false;
  const std::vector<int64_t> first = attention.integers("positions_first");
  const auto positions = [&](size_t i) {
    return attention.shape(i)[i < first.size() && first[i] != 0 ? 1 : 2];
  };
  const RotatedHeads heads{.heads = attention.shape(0)[0] * attention.integer("heads", 1),
                           .queries = positions(0),
                           .keys = positions(1),
                           .width = attention.shape(0).back()};
  const AttentionHead head{heads.queries, heads.keys, heads.width, attention.shape(2).back()};
  return has_attention_units(head, options.target.gpu) &&
         may_rotate_heads(heads, options.target.gpu);
}

bool may_add(const Graph& graph, const Node& add, ValueId normalized, const PassOptions& options) {
  if (add.op != "Add" || graph[normalized].shape != graph[add.outputs[0]].shape) return false;
  ValueId other = add.inputs[add.inputs[0] == normalized ? 1 : 0];
  if (other == normalized) return false;
  const Node* maker = maker_of(graph, other);
  if (maker != nullptr && maker->op == "Add") {
    const bool first = graph[maker->inputs[0]].constant.has_value();
    if (!first && !graph[maker->inputs[1]].constant) return false;
    maker = maker_of(graph, maker->inputs[first ? 1 : 0]);
  }
  if (maker == nullptr) return false;
  const std::optional<HeldOperand> product = product_of({graph, *maker});
  // Each block reduces whole rows of what is added.
  return product &&
         may_hold_operand({product->rows, product->columns, product->columns}, options.target.gpu);
}

}  // namespace pruner
