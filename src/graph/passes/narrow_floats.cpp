// Convolutions and products with constants of a float32 network multiply bfloat16 or float16 if the
// target has a unit for the type; on GPUs products of two values do, too. Sums are float32.
// A value that a unit reads, or that a unit's convolution makes, is stored in the narrow type. The
// kernel that makes the value rounds it once. Other readers compute in float32, and so does every
// kernel inside. All other values stay float32, also the result of a convolution that a contraction
// without the unit reads, since it reads each element many times.
//
// A value has the same type as all values that share its bytes: views, and the parts of a Concat in
// place. Inputs and outputs of the network, and values that a routine makes or reads, have to stay
// float32. If one of the values has to, all of them stay, and the contraction reads a copy.
#include <algorithm>
#include <numeric>
#include <set>

#include "graph/evaluate.h"
#include "graph/ops/op.h"
#include "graph/ops/window.h"
#include "graph/passes.h"

namespace pruner {
namespace {

// Returns the number of a contraction's first inputs that it multiplies.
size_t factors_of(const Node& node) { return node.op == "FusedAttention" ? 3 : 2; }

class Narrower {
 public:
  Narrower(Graph graph, DType type, bool gpu);
  Graph run() &&;

 private:
  int owner(ValueId id) const;
  void share(ValueId a, ValueId b) { shares_[owner(a)] = owner(b); }
  bool is_made_in(int group, ValueId id) const;
  bool is_stored_narrow(ValueId id) const {
    const int at = owner(id);
    return (read_[at] || (made_[at] && !read_wide_[at])) && !stays_[at];
  }
  bool is_of_pairs(const Node& node) const;
  void look_at(const Node& node);
  ValueId add_value(DType dtype, ValueId like);
  ValueId add_cast(ValueId from, DType to, int group);
  ValueId narrow_constant(ValueId id);
  ValueId narrow(ValueId id, int group);
  ValueId wide(ValueId id, int group);
  void rewrite(Node node);
  void drop_unread_casts();
  void number_groups();

  Graph graph_;
  const DType type_;         // type that the unit multiplies
  const bool gpu_;           // GPU units take products of two values
  std::vector<Node> nodes_;  // nodes of the new graph
  int groups_ = 0;
  std::map<ValueId, int> maker_;         // a value's group
  std::map<ValueId, ValueId> narrower_;  // input of the network's own Cast, per result
  std::vector<int> shares_;              // union-find of old values with the same bytes
  std::vector<bool> stays_;  // per owner, as the next three: whether the value has to be float32
  std::vector<bool> read_;   // whether a unit reads the value
  std::vector<bool> made_;   // whether a kernel with a unit's convolution makes the value
  std::vector<bool> read_wide_;  // whether a contraction without the unit reads the value
  std::map<ValueId, ValueId> constants_, copies_;    // narrow forms, per value
  std::map<std::pair<int, ValueId>, ValueId> wide_;  // float32 form, per reading group and value
};

// Returns how many products a convolution adds up along the last axis longer than 1.
int64_t terms_in_row(const OpCall& call) {
  const std::vector<int64_t>& kernel = call.shape(1);
  return channels(call) > 1 ? channels(call) : kernel[kernel.size() - 3];
}

// Whether a unit takes the node: its terms are pairs along the last axis that it adds over.
bool Narrower::is_of_pairs(const Node& node) const {
  const OpCall call{graph_, node};
  if (node.op == "FusedAttention") return gpu_;
  if (node.op != "Conv" && node.op != "MatMul" && node.op != "Gemm") return false;
  if (call.sums() || call.input(0).dtype != DType::kFloat32) return false;
  if (!call.input(1).constant && (!gpu_ || node.op == "Conv" || call.rank(0) < 2)) return false;
  if (node.op == "Conv")
    return channels_last(call) && call.integer("group", 1) == 1 && terms_in_row(call) % 2 == 0;
  const bool transposed = call.integer("transA", 0) != 0;
  const std::vector<int64_t>& data = call.shape(0);
  return call.rank(1) >= 2 && data[data.size() - (transposed && data.size() > 1 ? 2 : 1)] % 2 == 0;
}

// The constructor finds which values share bytes before it marks any value that has to stay
// float32.
Narrower::Narrower(Graph graph, DType type, bool gpu)
    : graph_(std::move(graph)),
      type_(type),
      gpu_(gpu),
      shares_(graph_.values.size()),
      stays_(graph_.values.size(), false),
      read_(graph_.values.size(), false),
      made_(graph_.values.size(), false),
      read_wide_(graph_.values.size(), false) {
  std::iota(shares_.begin(), shares_.end(), 0);
  for (const Node& node : graph_.nodes) {
    groups_ = std::max(groups_, node.group + 1);
    if (node.op == "Cast" && graph_[node.inputs[0]].dtype == type_ &&
        graph_[node.outputs[0]].dtype == DType::kFloat32)
      narrower_[node.outputs[0]] = node.inputs[0];
    if (node.group >= 0) {
      for (const ValueId id : node.outputs) maker_[id] = node.group;
    } else if (node.in_place) {
      for (const ValueId id : node.inputs) share(id, node.outputs[0]);
    } else {
      share(node.inputs[0], node.outputs[0]);
    }
  }
  for (size_t i = 0; i < graph_.values.size(); ++i) {
    const Value& value = graph_.values[i];
    if (value.slice) share(ValueId{static_cast<int32_t>(i)}, value.slice->of);
  }
  for (size_t i = 0; i < graph_.values.size(); ++i) {
    const Value& value = graph_.values[i];
    if (value.constant || value.dtype != DType::kFloat32)
      stays_[owner(ValueId{static_cast<int32_t>(i)})] = true;
  }
  for (const ValueId id : graph_.inputs) stays_[owner(id)] = true;
  for (const ValueId id : graph_.outputs) stays_[owner(id)] = true;
  std::vector<bool> convolves(static_cast<size_t>(groups_), false);
  for (const Node& node : graph_.nodes) {
    look_at(node);
    if (node.op == "Conv" && node.group >= 0 && is_of_pairs(node))
      convolves[static_cast<size_t>(node.group)] = true;
  }
  for (const Node& node : graph_.nodes) {
    for (const ValueId id : node.inputs) {
      const auto made = maker_.find(id);
      if (made == maker_.end() || made->second == node.group)
        continue;  // the value does not leave its kernel
      if (convolves[static_cast<size_t>(made->second)]) made_[owner(id)] = true;
    }
  }
}

void Narrower::look_at(const Node& node) {
  if (find_graph_op(node.op)->routine != nullptr) {
    for (const ValueId id : node.inputs) {
      if (id.valid()) stays_[owner(id)] = true;
    }
    for (const ValueId id : node.outputs) stays_[owner(id)] = true;
  }
  if (is_of_pairs(node)) {
    for (size_t i = 0; i < factors_of(node); ++i) {
      const ValueId id = node.inputs[i];
      if (!is_made_in(node.group, id) && !narrower_.contains(id)) read_[owner(id)] = true;
    }
  } else if (is_convolution(node) || node.op == "MatMul" || node.op == "Gemm") {
    for (const ValueId id : node.inputs)
      if (id.valid()) read_wide_[owner(id)] = true;
  }
}

int Narrower::owner(ValueId id) const {
  int at = id.value;
  while (shares_[at] != at) at = shares_[at];
  return at;
}

bool Narrower::is_made_in(int group, ValueId id) const {
  const auto it = maker_.find(id);
  return it != maker_.end() && it->second == group;
}

ValueId Narrower::add_value(DType dtype, ValueId like) {
  graph_.values.push_back({graph_[like].name, dtype, graph_[like].shape, std::nullopt});
  return ValueId{static_cast<int32_t>(graph_.values.size()) - 1};
}

Node cast_node(ValueId from, ValueId made, DType to, int group) {
  return {"Cast", {}, {from}, {made}, {{"to", std::string(dtype_name(to))}}, 0, group};
}

ValueId Narrower::add_cast(ValueId from, DType to, int group) {
  const ValueId made = add_value(to, from);
  nodes_.push_back(cast_node(from, made, to, group));
  return made;
}

ValueId Narrower::narrow_constant(ValueId id) {
  const auto [it, fresh] = constants_.try_emplace(id);
  if (!fresh) return it->second;
  it->second = add_cast(id, type_, -1);
  graph_[it->second].constant = evaluate_constant_node(graph_, nodes_.back())[0];
  nodes_.pop_back();
  return it->second;
}

// Returns the value that a unit reads for `id`.
ValueId Narrower::narrow(ValueId id, int group) {
  if (graph_[id].constant) return narrow_constant(id);
  if (const auto it = narrower_.find(id); it != narrower_.end()) return it->second;
  if (is_stored_narrow(id)) return id;
  const bool inside = is_made_in(group, id);
  const auto [it, fresh] = copies_.try_emplace(id);
  if (fresh) it->second = add_cast(id, type_, inside ? group : groups_++);
  return it->second;
}

// Returns the value that a kernel reads for `id` other than as a factor of a unit.
ValueId Narrower::wide(ValueId id, int group) {
  if (!is_stored_narrow(id)) return id;
  const auto [it, fresh] = wide_.try_emplace({group, id});
  if (fresh) it->second = add_cast(id, DType::kFloat32, group);
  return it->second;
}

void Narrower::rewrite(Node node) {
  if (node.group < 0) {  // a view, or a Concat in place
    nodes_.push_back(std::move(node));
    return;
  }
  const bool of_pairs = is_of_pairs(node);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    ValueId& id = node.inputs[i];
    if (!id.valid()) continue;
    id = of_pairs && i < factors_of(node) ? narrow(id, node.group) : wide(id, node.group);
  }
  const int group = node.group;
  const ValueId stored = node.outputs[0];
  // Attention rounds its result itself.
  const bool rounded = node.op == "FusedAttention" && is_stored_narrow(stored);
  const bool rounds = is_stored_narrow(stored) && !rounded;
  if (of_pairs && !rounded) node.attributes["sums"] = std::string(dtype_name(DType::kFloat32));
  if (rounds) node.outputs[0] = add_value(DType::kFloat32, stored);
  nodes_.push_back(std::move(node));
  if (rounds) nodes_.push_back(cast_node(nodes_.back().outputs[0], stored, type_, group));
}

// Drops the network's own Casts that only contractions read: those now read the Cast's input.
void Narrower::drop_unread_casts() {
  std::set<ValueId> read(graph_.outputs.begin(), graph_.outputs.end());
  for (const Node& node : nodes_) read.insert(node.inputs.begin(), node.inputs.end());
  std::erase_if(nodes_, [&](const Node& node) {
    return narrower_.contains(node.outputs[0]) && !read.contains(node.outputs[0]);
  });
}

// Numbers the groups by the place of their last node, which makes the value that leaves the group.
void Narrower::number_groups() {
  std::vector<int> number(static_cast<size_t>(groups_), -1);
  int next = groups_;
  for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
    if (node->group < 0) continue;
    int& known = number[static_cast<size_t>(node->group)];
    if (known < 0) known = --next;
    node->group = known;
  }
}

Graph Narrower::run() && {
  const size_t values = graph_.values.size();
  for (Node& node : std::exchange(graph_.nodes, {})) rewrite(std::move(node));
  for (size_t i = 0; i < values; ++i) {
    if (is_stored_narrow(ValueId{static_cast<int32_t>(i)})) graph_.values[i].dtype = type_;
  }
  drop_unread_casts();
  number_groups();
  graph_.nodes = std::move(nodes_);
  return std::move(graph_);
}

}  // namespace

Graph narrow_floats(Graph graph, const PassOptions& options) {
  const std::optional<DType> type = options.narrow_type();
  return type ? Narrower(std::move(graph), *type, options.target.is_gpu()).run() : std::move(graph);
}

}  // namespace pruner
