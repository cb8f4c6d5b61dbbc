// Marks the Concats that cost nothing. The kernel that makes an input of such a Concat writes it at
// its place in the result. If another Concat has the same inputs in a row, readers of the shorter
// result read it in the longer result. DenseNet's layers each join all the earlier layers.
// Inputs may be parts that are all cut out, and perhaps changed, to be joined (a cyclic shift, a
// rotary embedding). One kernel for all inputs is then better than one for each. So is the kernel
// that turns a product's columns.
#include <algorithm>
#include <ranges>
#include <set>

#include "graph/ops/op.h"
#include "graph/passes.h"
#include "graph/rotation.h"

namespace pruner {
namespace {

class ConcatPlacer {
 public:
  explicit ConcatPlacer(Graph graph);
  Graph run() &&;

 private:
  bool may_move(ValueId id) const { return movable_[id.value]; }
  std::optional<Slice>& slice(ValueId id) { return graph_[id].slice; }
  bool joins_cuttings(const Node& concat) const;
  void find_rotations();
  bool place_inputs(const Node& concat, int64_t axis);
  bool place_result(const Node& concat, int64_t axis);

  Graph graph_;
  // Each of these vectors has one element per value:
  std::vector<bool> movable_;  // whether kernels alone make and read the value
  std::vector<bool> whole_;    // whether parts may be written into the value, which views may read
  std::vector<bool> cut_;  // whether the value is a Slice, or element-wise of Slices and constants
  std::vector<int> readers_;
  std::set<const Node*> turning_;  // the Concats of rotations
};

ConcatPlacer::ConcatPlacer(Graph graph)
    : graph_(std::move(graph)),
      movable_(graph_.values.size()),
      whole_(graph_.values.size()),
      cut_(graph_.values.size()),
      readers_(graph_.values.size()) {
  for (const Node& node : graph_.nodes) {
    const GraphOp& op = *find_graph_op(node.op);
    // A routine takes and makes whole tensors.
    const bool kernel = op.fusion < Fusion::kAlias && op.routine == nullptr;
    // Indices are checked as a row of numbers.
    if (const ValueId indices = indices_of(node); indices.valid())
      movable_[indices.value] = whole_[indices.value] = false;
    for (const ValueId id : node.outputs) movable_[id.value] = whole_[id.value] = kernel;
    bool cut = op.fusion <= Fusion::kBroadcast;
    for (const ValueId id : node.inputs) {
      if (!id.valid()) continue;
      if (!kernel) movable_[id.value] = false;
      if (!kernel && op.fusion != Fusion::kAlias) whole_[id.value] = false;
      cut = cut && (cut_[id.value] || graph_[id].constant);
      ++readers_[id.value];
    }
    for (const ValueId id : node.outputs) cut_[id.value] = cut || node.op == "Slice";
  }
  std::vector<bool> given(graph_.values.size());  // whether the user gets the value or a view of it
  for (const ValueId id : graph_.outputs) given[id.value] = true;
  for (const Node& node : graph_.nodes | std::views::reverse)
    if (is_alias(node.op) && given[node.outputs[0].value]) given[node.inputs[0].value] = true;
  for (size_t i = 0; i < given.size(); ++i)
    if (given[i]) movable_[i] = whole_[i] = false;
  find_rotations();
}

void ConcatPlacer::find_rotations() {
  const Readers readers = readers_of(graph_);
  for (const Node& product : graph_.nodes) {
    if (product.op != "MatMul") continue;
    const auto rotation = rotation_of(graph_, readers, product.outputs[0]);
    if (!rotation) continue;
    for (const size_t n : *rotation) turning_.insert(&graph_.nodes[n]);
  }
}

bool ConcatPlacer::joins_cuttings(const Node& concat) const {
  return std::ranges::all_of(concat.inputs,
                             [&](ValueId id) { return cut_[id.value] && readers_[id.value] == 1; });
}

// Gives each input its place in the result, if all can have one.
bool ConcatPlacer::place_inputs(const Node& concat, int64_t axis) {
  const ValueId whole = concat.outputs[0];
  if (!whole_[whole.value]) return false;
  std::vector<ValueId> distinct = concat.inputs;
  std::ranges::sort(distinct, {}, &ValueId::value);
  if (std::ranges::adjacent_find(distinct) != distinct.end()) return false;
  for (const ValueId id : concat.inputs)
    if (!may_move(id) || slice(id)) return false;
  int64_t start = 0;
  for (const ValueId id : concat.inputs) {
    slice(id) = Slice{whole, axis, start};
    start += graph_[id].shape[axis];
  }
  return true;
}

// Places the result where its inputs lie already, if the inputs lie in a row.
bool ConcatPlacer::place_result(const Node& concat, int64_t axis) {
  const ValueId result = concat.outputs[0];
  const std::optional<Slice> first = slice(concat.inputs[0]);
  if (!may_move(result) || slice(result) || !first || first->axis != axis) return false;
  int64_t at = first->start;
  for (const ValueId id : concat.inputs) {
    const std::optional<Slice>& other = slice(id);
    if (!other || other->of != first->of || other->axis != axis || other->start != at) return false;
    at += graph_[id].shape[axis];
  }
  slice(result) = first;
  return true;
}

Graph ConcatPlacer::run() && {
  std::vector<Node*> concats;
  for (Node& node : graph_.nodes)
    if (node.op == "Concat") concats.push_back(&node);
  // The longest Concat goes first: a shorter one may find its inputs in a row in a longer result.
  std::ranges::stable_sort(
      concats, std::greater(), [](const Node* node) { return node->inputs.size(); });
  for (Node* node : concats) {
    const OpCall call{graph_, *node};
    const int64_t axis = *call.axis("axis", 0, call.rank());
    node->in_place = !turning_.contains(node) && !joins_cuttings(*node) &&
                     (place_inputs(*node, axis) || place_result(*node, axis));
  }
  return std::move(graph_);
}

}  // namespace

Graph place_concats(Graph graph) { return ConcatPlacer(std::move(graph)).run(); }

}  // namespace pruner
