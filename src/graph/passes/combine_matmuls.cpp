// Products of one value with several constant matrices become one product and slices of it (relay's
// CombineParallelDense): query, key and value of an attention. Products are combined only if a
// reshape follows, which ends a kernel anyway; an epilogue that could be fused (a rotary embedding,
// behind the reshape) is worth more. A product without a bias beside products with a bias
// (Whisper's keys) gets a bias of zeros.
#include <algorithm>

#include "graph/passes.h"
#include "graph/rewriter.h"
#include "graph/rotation.h"

namespace pruner {
namespace {

// MatMul or CodedMatMul, and the Add of a constant bias after it if there is one.
struct Branch {
  size_t matmul;
  std::optional<size_t> add;
  ValueId bias, result;
};

// A key is a node's data and form_of(). Nodes with equal keys can be joined: their constant
// operands are put one beside the other.
using Key = std::pair<ValueId, std::string>;

class Branches {
 public:
  Branches(const Graph& graph, const PassOptions& options)
      : graph_(graph), readers_(readers_of(graph)), rotates_(options.joins_in_tiles()) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const std::optional<Branch> branch = branch_at(i);
      if (!branch) continue;
      const Node& node = graph.nodes[i];
      const Key key{node.inputs[0], form_of(node)};
      const size_t first = first_.try_emplace(key, i).first->second;
      starting_at_[first].push_back(*branch);
    }
  }

  /// Returns the branches of which node i is the first, if there are several; else none.
  std::vector<Branch> starting_at(size_t i) const {
    const auto at = starting_at_.find(i);
    const bool several = at != starting_at_.end() && at->second.size() > 1;
    return several ? at->second : std::vector<Branch>();
  }

 private:
  // Returns the reader of a value that has one reader; else null.
  const Node* reader(ValueId id, size_t* index = nullptr) const {
    const std::vector<size_t>& readers = readers_[id.value];
    if (readers.size() != 1 || readers[0] == graph_.nodes.size()) return nullptr;
    if (index != nullptr) *index = readers[0];
    return &graph_.nodes[readers[0]];
  }

  // Returns the operator, the types of its constants and its attributes as a text.
  std::string form_of(const Node& node) const {
    std::string text = node.op;
    for (size_t i = 1; i < node.inputs.size(); ++i)
      text += " " + std::string(dtype_name(graph_[node.inputs[i]].dtype));
    for (const char* name : {"bits", "block_size", "zero"})
      text += " " + std::to_string(OpCall{graph_, node}.integer(name, 0));
    return text;
  }

  std::optional<Branch> branch_at(size_t i) const {
    const Node& node = graph_.nodes[i];
    const bool plain = node.op == "MatMul" && node.attributes.empty();
    if (!plain && node.op != "CodedMatMul") return std::nullopt;
    const Value& weight = graph_[node.inputs[1]];
    for (size_t operand = 1; operand < node.inputs.size(); ++operand) {
      const Value& value = graph_[node.inputs[operand]];
      if (!value.constant || value.shape.size() != 2) return std::nullopt;
    }
    if (graph_[node.inputs[0]].constant || graph_[node.inputs[0]].shape.size() < 2)
      return std::nullopt;
    Branch branch{i, std::nullopt, {}, node.outputs[0]};
    size_t at = 0;
    const Node* next = reader(branch.result, &at);
    if (next != nullptr && next->op == "Add") {
      branch.bias = next->inputs[next->inputs[0] == branch.result ? 1 : 0];
      const std::optional<Tensor>& bias = graph_[branch.bias].constant;
      if (!bias || bias->shape() != std::vector<int64_t>{weight.shape[1]}) return std::nullopt;
      branch.add = at;
      branch.result = next->outputs[0];
      next = reader(branch.result);
    }
    if (next == nullptr || next->op != "Reshape") return std::nullopt;
    if (plain && rotates_ && rotation_of(graph_, readers_, branch.result)) return std::nullopt;
    return branch;
  }

  const Graph& graph_;
  Readers readers_;
  bool rotates_;                 // whether kernels of products turn their columns
  std::map<Key, size_t> first_;  // first product with the key
  std::map<size_t, std::vector<Branch>> starting_at_;
};

ValueId bias_of(Rewriter& r, const Branch& branch) {
  if (branch.add) return r.current(branch.bias);
  const Value& result = r[branch.result];
  return r.add_constant(result.name + "/bias", Tensor(result.dtype, {result.shape.back()}));
}

void emit_combined(Rewriter& r,
                   const std::vector<Node>& nodes,
                   const std::vector<Branch>& branches) {
  const Node& first = nodes[branches[0].matmul];
  std::vector<ValueId> operands = {r.current(first.inputs[0])}, biases;
  for (size_t i = 1; i < first.inputs.size(); ++i) {
    std::vector<ValueId> parts;
    for (const Branch& branch : branches)
      parts.push_back(r.current(nodes[branch.matmul].inputs[i]));
    operands.push_back(r.add("Concat", parts, {{"axis", int64_t{1}}}, first.name));
  }
  const auto has_bias = [](const Branch& branch) { return branch.add.has_value(); };
  ValueId product = r.add(first.op, operands, first.attributes, first.name);
  if (std::ranges::any_of(branches, has_bias)) {
    for (const Branch& branch : branches) biases.push_back(bias_of(r, branch));
    const ValueId bias = r.add("Concat", biases, {{"axis", int64_t{0}}}, first.name);
    product = r.add("Add", {product, bias}, {}, first.name);
  }
  const auto axis = static_cast<int64_t>(r[product].shape.size()) - 1;
  int64_t start = 0;
  for (const Branch& branch : branches) {
    const int64_t end = start + r[branch.result].shape.back();
    r.replace(branch.result, r.add_slice(product, axis, {{start}}, {{end}}, r[product].name));
    start = end;
  }
}

// Reshape(Slice(x)) that splits the sliced last dimension is Slice(Reshape(x)), which can join what
// follows the reshape; empty when the slice doesn't start and end at a whole part.
std::optional<ValueId> slice_after_reshape(Rewriter& r, const Node& reshape) {
  // At other extents the data may hold no whole number of parts.
  if (r.graph().keeps_all()) return std::nullopt;
  const Node* slice = r.producer(r.current(reshape.inputs[0]));
  if (slice == nullptr || slice->op != "Slice" || slice->inputs.size() != 4) return std::nullopt;
  const ValueId data = slice->inputs[0];
  const std::vector<int64_t> in = r[slice->outputs[0]].shape, out = r[reshape.outputs[0]].shape;
  const auto axis = static_cast<int64_t>(in.size()) - 1;
  const OpCall call{r.graph(), *slice};
  if (*call.constant_integers(3, "axes") != std::vector<int64_t>{axis}) return std::nullopt;
  if (out.size() != in.size() + 1 || !std::equal(in.begin(), in.end() - 1, out.begin())) {
    return std::nullopt;
  }
  const int64_t part = out.back(), start = (*call.constant_integers(1, "starts"))[0];
  if (start % part != 0 || r[data].shape.back() % part != 0) return std::nullopt;
  std::vector<int64_t> shape = r[data].shape;
  shape.back() /= part;
  shape.push_back(part);
  const int64_t first = start / part, end = first + out[out.size() - 2];
  const ValueId parts = r.add_reshape(data, shape);
  return r.add_slice(parts, axis, {{first}}, {{end}}, r[parts].name);
}

}  // namespace

Graph combine_matmuls(Graph graph, const PassOptions& options) {
  const Graph old = graph;  // shares the tensors
  const Branches plan(old, options);
  Rewriter r(std::move(graph));
  std::vector<Node> nodes = r.take_nodes();
  std::vector<bool> done(nodes.size(), false);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const std::vector<Branch> branches = plan.starting_at(i);
    if (!branches.empty()) emit_combined(r, nodes, branches);
    for (const Branch& branch : branches) {
      done[branch.matmul] = true;
      if (branch.add) done[*branch.add] = true;
    }
    if (done[i]) continue;
    if (nodes[i].op == "Reshape") {
      if (const std::optional<ValueId> moved = slice_after_reshape(r, nodes[i])) {
        r.replace(nodes[i].outputs[0], *moved);
        continue;
      }
    }
    r.emit(std::move(nodes[i]));
  }
  return r.finish();
}

}  // namespace pruner
