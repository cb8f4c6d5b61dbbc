// Between its inputs and outputs, a network of float16 or bfloat16 computes in float32; only a Cast
// of its own rounds. The network is then the float32 network with other weights: the same tasks,
// records and times. CPUs convert a number in more time than they multiply one, and a contraction
// reads each of its inputs many times. Results are nearer to what is meant than if each operator
// rounded. GPUs convert for nothing: the pass runs on GPUs only if narrow_floats then decides anew
// which values have 16 bits.
#include <algorithm>

#include "graph/passes.h"
#include "graph/rewriter.h"

namespace pruner {
namespace {

class Widener {
 public:
  explicit Widener(Graph graph) : r_(std::move(graph)) {}
  Graph run() &&;

 private:
  bool is_narrow(ValueId id) const { return id.valid() && is_narrow_float(r_[id].dtype); }
  bool can_be_wide(const Node& node) const;
  ValueId cast(ValueId id, DType to);
  ValueId wide(ValueId old);
  void widen(Node node);

  Rewriter r_;
  std::map<ValueId, ValueId> wide_;  // float32 form, per old value
};

// Whether the node may compute in float32. An operator that reads bits does no arithmetic, and an
// operator that only moves an input or a table moves half the bytes.
bool Widener::can_be_wide(const Node& node) const {
  const GraphOp& op = *find_graph_op(node.op);
  if (op.routine != nullptr || node.op == "BitCast") return false;
  const auto narrow = [&](ValueId id) { return is_narrow(id); };
  if (op.only_moves()) {
    return std::ranges::any_of(node.inputs, [&](ValueId id) { return wide_.contains(id); });
  }
  return std::ranges::any_of(node.inputs, narrow) || std::ranges::any_of(node.outputs, narrow);
}

ValueId Widener::cast(ValueId id, DType to) {
  return r_.add("Cast", {id}, {{"to", std::string(dtype_name(to))}}, r_[id].name);
}

ValueId Widener::wide(ValueId old) {
  const auto [it, fresh] = wide_.try_emplace(old);
  if (fresh) it->second = cast(r_.current(old), DType::kFloat32);
  return it->second;
}

void Widener::widen(Node node) {
  const ValueId old = node.outputs[0];
  const DType type = r_[old].dtype;
  for (ValueId& id : node.inputs) {
    if (is_narrow(id)) id = wide(id);
  }
  const bool is_wide = node.op == "Cast" && r_[node.inputs[0]].dtype == type;
  const ValueId made = is_wide ? node.inputs[0] : r_.add(std::move(node));
  if (r_[made].dtype == type) {
    r_.replace(old, made);
    return;
  }
  wide_.emplace(old, made);
  r_.replace(old, cast(made, type));  // narrow form for the nodes that read `old`
}

Graph Widener::run() && {
  for (Node& node : r_.take_nodes()) {
    if (can_be_wide(node)) {
      widen(std::move(node));
    } else {
      r_.emit(std::move(node));
    }
  }
  return r_.finish();
}

}  // namespace

Graph widen_floats(Graph graph, const PassOptions& options) {
  if (options.target.is_gpu() && !options.narrow_type()) return graph;
  const bool has_any = std::ranges::any_of(
      graph.values, [](const Value& value) { return is_narrow_float(value.dtype); });
  return has_any ? Widener(std::move(graph)).run() : std::move(graph);
}

}  // namespace pruner
