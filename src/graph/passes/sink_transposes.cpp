// Moves transposes towards the outputs, through every operator that can work on the untransposed
// data instead, and cancels transposes that meet. A transpose that is left stands at the network's
// border or before an operator that needs the order; if only extents of one move, it becomes a
// reshape.
#include <algorithm>
#include <numeric>

#include "graph/passes.h"
#include "graph/rewriter.h"

namespace pruner {

using Order =
    std::vector<int64_t>;  // dimension d of the result is dimension order[d] of the source

static Order inverse(const Order& order) {
  Order result(order.size());
  for (size_t d = 0; d < order.size(); ++d) {
    result[order[d]] = static_cast<int64_t>(d);
  }
  return result;
}

// Whether elements stay where they are: only extents of one move.
static bool keeps_bytes(std::span<const int64_t> shape, const Order& order) {
  Order kept;
  for (const int64_t d : order) {
    if (shape[d] != 1) kept.push_back(d);
  }
  return std::is_sorted(kept.begin(), kept.end());
}

static Order identity(size_t rank) {
  Order order(rank);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

namespace {

// One walk over the nodes. A node is rewritten to read the sources of its transposed inputs, and a
// transpose follows it instead.
class Sinker {
 public:
  explicit Sinker(Graph graph) : r_(std::move(graph)) {}
  Graph run();

 private:
  using Rule = bool (Sinker::*)(Node&);
  static Rule rule_for(const std::string& op);

  // These return the transpose that made a value, and its order.
  const Node* transpose_of(ValueId id) const;
  Order order_of(ValueId id) const {
    return OpCall{r_.graph(), *transpose_of(id)}.integers("perm");
  }

  ValueId move(ValueId id, const Order& order);
  bool replace(Node& node, std::vector<ValueId> inputs, const Order& order);
  std::optional<Order> common_order(const Node& node) const;
  ValueId untransposed(ValueId id, const Order& order);

  bool sink_transpose(Node& node);
  bool sink_elementwise(Node& node);
  bool sink_concat(Node& node);
  bool sink_softmax(Node& node);
  bool sink_reduce(Node& node);
  bool sink_slice(Node& node);
  bool sink_pad(Node& node);
  bool sink_expand(Node& node);
  bool sink_reshape(Node& node);
  bool sink_resize(Node& node);
  bool sink_lookup(Node& node);
  bool sink_matmul(Node& node);

  Rewriter r_;
  std::map<std::pair<ValueId, Order>, ValueId> moved_;
};

const Node* Sinker::transpose_of(ValueId id) const {
  const Node* node = r_.producer(id);
  return node != nullptr && node->op == "Transpose" ? node : nullptr;
}

// Returns the value transposed. Transposes in a row become one, and equal transposes are shared.
ValueId Sinker::move(ValueId id, const Order& order) {
  if (const Node* before = transpose_of(id)) {
    const Order first = order_of(id);
    Order both;
    for (const int64_t d : order) both.push_back(first[d]);
    return move(before->inputs[0], both);
  }
  if (std::is_sorted(order.begin(), order.end())) return id;
  const auto [it, fresh] = moved_.try_emplace({id, order});
  if (fresh) it->second = r_.add_transpose(id, order);
  return it->second;
}

// Replaces the node by the same operator on `inputs` and a transpose by `order` behind it.
bool Sinker::replace(Node& node, std::vector<ValueId> inputs, const Order& order) {
  const ValueId made = r_.add(node.op, std::move(inputs), node.attributes, node.name);
  r_.replace(node.outputs[0], move(made, order));
  return true;
}

// Returns the order of the largest transposed input of the output's rank, unless more elements
// would have to be transposed than are spared.
std::optional<Order> Sinker::common_order(const Node& node) const {
  const size_t rank = r_[node.outputs[0]].shape.size();
  std::optional<Order> order;
  int64_t largest = 0;
  for (const ValueId id : node.inputs) {
    if (!id.valid() || !transpose_of(id) || r_[id].shape.size() != rank) continue;
    const int64_t elements = element_count(r_[id].shape);
    if (elements <= largest) continue;
    largest = elements;
    order = order_of(id);
  }
  if (!order) return std::nullopt;
  int64_t spared = 0, moved = 0;
  for (const ValueId id : node.inputs) {
    if (!id.valid() || r_[id].constant) continue;
    const bool same = transpose_of(id) && order_of(id) == *order;
    const std::vector<int64_t>& shape = r_[id].shape;
    if (same || shape.size() < rank || !keeps_bytes(shape, inverse(*order))) {
      (same ? spared : moved) += element_count(shape);
    }
  }
  if (moved > spared) return std::nullopt;
  return order;
}

// Returns a value as an operand beside sources of transposes by `order`.
ValueId Sinker::untransposed(ValueId id, const Order& order) {
  const Value& value = r_[id];
  if (value.shape.size() <= order.size() && element_count(value.shape) == 1) return id;
  std::vector<int64_t> aligned(order.size() - value.shape.size(), 1);
  aligned.insert(aligned.end(), value.shape.begin(), value.shape.end());
  return move(r_.add_reshape(id, aligned), inverse(order));
}

bool Sinker::sink_transpose(Node& node) {
  const OpCall call{r_.graph(), node};
  Order order = call.integers("perm");
  if (order.empty()) {
    order = identity(call.shape(0).size());
    std::reverse(order.begin(), order.end());
  }
  r_.replace(node.outputs[0], move(node.inputs[0], order));
  return true;
}

bool Sinker::sink_elementwise(Node& node) {
  const std::optional<Order> order = common_order(node);
  if (!order) return false;
  std::vector<ValueId> inputs = node.inputs;
  for (ValueId& id : inputs) {
    if (id.valid()) id = untransposed(id, *order);
  }
  return replace(node, std::move(inputs), *order);
}

bool Sinker::sink_concat(Node& node) {
  const std::optional<Order> order = common_order(node);
  if (!order) return false;
  const OpCall call{r_.graph(), node};
  const auto axis = static_cast<size_t>(*call.axis("axis", 0, call.rank()));
  node.attributes["axis"] = (*order)[axis];
  std::vector<ValueId> inputs;
  for (const ValueId id : node.inputs) inputs.push_back(move(id, inverse(*order)));
  return replace(node, std::move(inputs), *order);
}

bool Sinker::sink_softmax(Node& node) {
  if (!transpose_of(node.inputs[0])) return false;
  const Order order = order_of(node.inputs[0]);
  const OpCall call{r_.graph(), node};
  const auto axis = static_cast<size_t>(*call.axis("axis", -1, call.rank()));
  node.attributes["axis"] = order[axis];
  return replace(node, {move(node.inputs[0], inverse(order))}, order);
}

bool Sinker::sink_reduce(Node& node) {
  if (!transpose_of(node.inputs[0])) return false;
  const Order order = order_of(node.inputs[0]);
  const OpCall call{r_.graph(), node};
  if (!call.has(1)) return false;
  const Order axes = *normal_axes(*call.constant_integers(1, "axes"), call.rank());
  if (axes.empty()) return false;
  Order physical, rest = order;
  for (const int64_t axis : axes) physical.push_back(order[axis]);
  if (call.integer("keepdims", 1) == 0) {
    for (size_t i = axes.size(); i-- > 0;) rest.erase(rest.begin() + axes[i]);
    Order sorted = rest;  // the remaining dimensions, renumbered without gaps
    std::sort(sorted.begin(), sorted.end());
    for (int64_t& d : rest) {
      d = std::lower_bound(sorted.begin(), sorted.end(), d) - sorted.begin();
    }
  }
  const ValueId reduced = r_.add_integers(node.name + "/axes", physical);
  return replace(node, {move(node.inputs[0], inverse(order)), reduced}, rest);
}

bool Sinker::sink_slice(Node& node) {
  if (!transpose_of(node.inputs[0])) return false;
  const Order order = order_of(node.inputs[0]);
  const OpCall call{r_.graph(), node};
  Order axes = call.has(3) ? *call.constant_integers(3, "axes")
                           : identity(call.constant_integers(1, "starts")->size());
  for (int64_t& axis : axes) axis = order[*normal_axis(axis, call.rank())];
  std::vector<ValueId> inputs = node.inputs;
  inputs.resize(std::max<size_t>(inputs.size(), 4));
  inputs[0] = move(node.inputs[0], inverse(order));
  inputs[3] = r_.add_integers(node.name + "/axes", axes);
  return replace(node, std::move(inputs), order);
}

bool Sinker::sink_pad(Node& node) {
  const OpCall call{r_.graph(), node};
  if (!transpose_of(node.inputs[0]) || call.has(3)) return false;
  const Order order = order_of(node.inputs[0]), pads = *call.constant_integers(1, "pads");
  Order physical(pads.size());
  for (size_t d = 0; d < order.size(); ++d) {
    const auto to = static_cast<size_t>(order[d]);
    physical[to] = pads[d];
    physical[order.size() + to] = pads[order.size() + d];
  }
  std::vector<ValueId> inputs = node.inputs;
  inputs[0] = move(node.inputs[0], inverse(order));
  inputs[1] = r_.add_integers(node.name + "/pads", physical);
  return replace(node, std::move(inputs), order);
}

bool Sinker::sink_expand(Node& node) {
  const std::vector<int64_t> to = r_[node.outputs[0]].shape;
  if (!transpose_of(node.inputs[0]) || r_[node.inputs[0]].shape.size() != to.size()) return false;
  const Order order = order_of(node.inputs[0]);
  Order physical(to.size());
  for (size_t d = 0; d < to.size(); ++d) physical[order[d]] = to[d];
  const ValueId shape = r_.add_integers(node.name + "/shape", physical);
  return replace(node, {move(node.inputs[0], inverse(order)), shape}, order);
}

bool Sinker::sink_resize(Node& node) {
  if (!transpose_of(node.inputs[0])) return false;
  const Order order = order_of(node.inputs[0]);
  // Sizes, scales and regions stay in their order; the axes say which dimensions they belong to.
  std::vector<int64_t> axes = OpCall{r_.graph(), node}.integers("axes");
  if (axes.empty()) axes = identity(order.size());
  for (int64_t& axis : axes) axis = order[*normal_axis(axis, std::ssize(order))];
  node.attributes["axes"] = std::move(axes);
  node.inputs[0] = move(node.inputs[0], inverse(order));
  return replace(node, node.inputs, order);
}

// The table has no dimension of the data.
bool Sinker::sink_lookup(Node& node) {
  if (!transpose_of(node.inputs[1])) return false;
  const Order order = order_of(node.inputs[1]);
  return replace(node, {node.inputs[0], move(node.inputs[1], inverse(order))}, order);
}

// A run of dimensions of two shapes with equal products, which a reshape splits and merges. A new
// extent of one belongs to the dimension before it: repeating along it joins the two dimensions.
struct Block {
  std::vector<size_t> from, to;
  int64_t last = -1;  // place of the block's last source dimension in memory
};

static std::vector<Block> blocks_of(std::span<const int64_t> from, std::span<const int64_t> to) {
  std::vector<Block> blocks;
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    Block block;
    int64_t a = 1, b = 1;
    const auto take_from = [&] { a *= from[i], block.from.push_back(i++); };
    const auto take_to = [&] { b *= to[j], block.to.push_back(j++); };
    if (i < from.size()) take_from();
    if (j < to.size()) take_to();
    while (a != b) a < b ? take_from() : take_to();
    while (j < to.size() && to[j] == 1 && (i == from.size() || from[i] != 1)) take_to();
    blocks.push_back(std::move(block));
  }
  return blocks;
}

// [n, h, w, c] seen as [n, c, h, w] and reshaped to [n, g, c/g, h, w] is [n, h, w, g, c/g] in
// another order. Blocks that a reshape merges must lie together; the order of the blocks is free.
// The blocks are put in the order of their last dimensions in memory: the innermost stays there.
bool Sinker::sink_reshape(Node& node) {
  if (!transpose_of(node.inputs[0])) {
    const std::vector<int64_t> shape = r_[node.outputs[0]].shape;
    r_.replace(node.outputs[0], r_.add_reshape(node.inputs[0], shape));
    return true;
  }
  const Order place = order_of(node.inputs[0]);  // place in memory, per dimension
  const std::vector<int64_t> from = r_[node.inputs[0]].shape, to = r_[node.outputs[0]].shape;
  std::vector<Block> blocks = blocks_of(from, to);
  for (Block& block : blocks) {
    for (const size_t d : block.from) {
      if (from[d] != 1) block.last = std::max(block.last, place[d]);
    }
  }
  std::stable_sort(
      blocks.begin(), blocks.end(), [](const Block& a, const Block& b) { return a.last < b.last; });
  Order in_order, out_order;
  std::vector<int64_t> shape;
  for (const Block& block : blocks) {
    for (const size_t d : block.from) in_order.push_back(static_cast<int64_t>(d));
    for (const size_t d : block.to) {
      out_order.push_back(static_cast<int64_t>(d));
      shape.push_back(to[d]);
    }
  }
  const ValueId viewed = r_.add_reshape(move(node.inputs[0], in_order), shape);
  r_.replace(node.outputs[0], move(viewed, inverse(out_order)));
  return true;
}

// A transpose that exchanges the last two dimensions of an operand is the operator's own flag.
bool Sinker::sink_matmul(Node& node) {
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const ValueId id = node.inputs[i];
    if (!transpose_of(id)) continue;
    Order order = order_of(id);
    const auto last = static_cast<int64_t>(order.size()) - 1;
    if (order.end()[-2] != last) continue;
    std::swap(order.end()[-1], order.end()[-2]);
    const char* flag = i == 0 ? "transA" : "transB";
    const int64_t before = OpCall{r_.graph(), node}.integer(flag, 0);
    node.inputs[i] = move(transpose_of(id)->inputs[0], order);
    node.attributes[flag] = 1 - before;
  }
  return false;
}

Sinker::Rule Sinker::rule_for(const std::string& op) {
  static const std::map<std::string, Rule> kRules = {
      {"Transpose", &Sinker::sink_transpose},
      {"Concat", &Sinker::sink_concat},
      {"Lookup", &Sinker::sink_lookup},
      {"Softmax", &Sinker::sink_softmax},
      {"LogSoftmax", &Sinker::sink_softmax},
      {"Slice", &Sinker::sink_slice},
      {"Pad", &Sinker::sink_pad},
      {"Expand", &Sinker::sink_expand},
      {"Reshape", &Sinker::sink_reshape},
      {"Resize", &Sinker::sink_resize},
      {"MatMul", &Sinker::sink_matmul},
      {"Gemm", &Sinker::sink_matmul},
      // The operator's channels are dimension 1 of the data, whatever the order of the data.
      {"BatchNormalization", nullptr},
      // The operator's blocks are along the dimension of the data that an attribute names.
      {"DequantizeBlocks", nullptr},
  };
  const auto it = kRules.find(op);
  if (it != kRules.end()) return it->second;
  if (op.starts_with("Reduce")) return &Sinker::sink_reduce;
  return find_graph_op(op)->fusion <= Fusion::kBroadcast ? &Sinker::sink_elementwise : nullptr;
}

Graph Sinker::run() {
  for (Node& node : r_.take_nodes()) {
    for (ValueId& id : node.inputs) id = r_.current(id);
    const Rule rule = rule_for(node.op);
    if (rule == nullptr || !(this->*rule)(node)) r_.emit(std::move(node));
  }
  return r_.finish();
}

}  // namespace

// Makes each transpose that is left and moves no byte a reshape, joined with reshapes around it.
static Graph reshape_where_bytes_stay(Graph graph) {
  Rewriter r(std::move(graph));
  for (Node& node : r.take_nodes()) {
    const std::vector<int64_t> shape = r[node.outputs[0]].shape;
    const ValueId data = node.inputs.empty() ? ValueId{} : r.current(node.inputs[0]);
    const bool still = node.op == "Transpose" &&
                       keeps_bytes(r[data].shape, OpCall{r.graph(), node}.integers("perm"));
    if (still || node.op == "Reshape") {
      r.replace(node.outputs[0], r.add_reshape(data, shape));
    } else {
      r.emit(std::move(node));
    }
  }
  return r.finish();
}

Graph sink_transposes(Graph graph) {
  return reshape_where_bytes_stay(Sinker(std::move(graph)).run());
}

}  // namespace pruner
