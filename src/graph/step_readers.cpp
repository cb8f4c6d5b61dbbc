#include "graph/step_readers.h"

#include <algorithm>
#include <string_view>

#include "graph/ops/op.h"

namespace pruner {

static bool is_one_of(std::string_view op, std::span<const std::string_view> ops) {
  return std::ranges::find(ops, op) != ops.end();
}

// Comparisons are operators of kComparison; a Cast to integers or bool cuts digits off.
static bool jumps(const Graph& graph, const Node& node, const GraphOp& op) {
  static constexpr std::string_view kOps[] = {"ArgMax",
                                              "ArgMin",
                                              "Ceil",
                                              "Floor",
                                              "Mod",
                                              "NonMaxSuppression",
                                              "NonZero",
                                              "Quantize",
                                              "Round",
                                              "Sign",
                                              "TopK",
                                              "Unique"};
  if (node.op == "Cast") return !is_float(graph[node.outputs[0]].dtype);
  return op.is(kComparison) || is_one_of(node.op, kOps);
}

static bool keeps_digits(const Node& node, const GraphOp& op) {
  static constexpr std::string_view kOps[] = {
      "Abs",       "Add",       "Cast", "Clip", "Concat",      "Div", "Identity", "LeakyRelu",
      "Max",       "MaxPool",   "Min",  "Mul",  "MultiplyAdd", "Neg", "PRelu",    "Reciprocal",
      "ReduceMax", "ReduceMin", "Relu", "Sqrt", "Sub",         "Sum", "Where"};
  return op.only_moves() || op.fusion == Fusion::kAlias || is_one_of(node.op, kOps);
}

std::vector<bool> read_by_steps(const Graph& graph) {
  std::vector<bool> read(graph.values.size(), false);
  const auto slot = [](ValueId id) { return static_cast<size_t>(id.value); };
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const GraphOp* op = find_graph_op(node->op);
    if (op == nullptr) continue;
    const bool passed_on =
        keeps_digits(*node, *op) &&
        std::ranges::any_of(node->outputs, [&](ValueId id) { return read[slot(id)]; });
    if (!passed_on && !jumps(graph, *node, *op)) continue;
    for (const ValueId id : node->inputs)
      if (id.valid()) read[slot(id)] = true;
  }
  return read;
}

}  // namespace pruner
