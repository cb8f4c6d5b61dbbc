// Attention of heads,
//   MatMul(Softmax(hide(MatMul(q, k^T) * scale) + bias), v),
// becomes one FusedAttention, whose scores nothing outside of a kernel sees. Where queries, keys
// and values are transposed slices of projections [b, positions, heads, width], it reads these, and
// writes what the transpose after it would.
#include <algorithm>

#include "graph/ops/op.h"
#include "graph/passes.h"
#include "graph/rewriter.h"

namespace pruner {
namespace {

// A score that is this low or lower has an exponential of 0 beside any other.
constexpr double kNever = -1e30;

const std::vector<int64_t> kHeadsAndPositions = {0, 2, 1, 3};  // exchanged

// The heads of query, key or value in a tensor [b, positions, heads, width].
struct Heads {
  ValueId of;
  int64_t first = 0;
};

struct Scores {
  ValueId query, key;
  double scale = 1, hidden = 0;
  ValueId bias = {}, visible = {};
  bool causal = false;
};

class AttentionFuser {
 public:
  explicit AttentionFuser(Graph graph) : r_(std::move(graph)) {}
  Graph run() &&;

 private:
  // What makes a value that one node alone reads.
  const Node* only_made_by(ValueId id, std::string_view op) const {
    return r_.uses(id) == 1 ? r_.producer(id, op) : nullptr;
  }
  bool is_causal(const Scores& s, ValueId visible) const;
  bool take_mask(Scores& s, const Node& where) const;
  bool take_bias(Scores& s, const Node& add, ValueId& data) const;
  std::optional<Scores> scores_of(ValueId id) const;
  std::optional<Heads> by_positions(ValueId id) const;
  bool fuse(const Node& product);

  Rewriter r_;
  std::map<ValueId, ValueId> transposed_;  // a result, and it with positions first
};

// Whether a constant mask shows each query the keys up to its own place, counted from the last.
bool AttentionFuser::is_causal(const Scores& s, ValueId visible) const {
  const std::optional<Tensor>& mask = r_[visible].constant;
  const int64_t queries = r_[s.query].shape[2], keys = r_[s.key].shape[2];
  const std::vector<int64_t>& shape = r_[visible].shape;
  if (!mask || shape.size() < 2 || mask->num_elements() != queries * keys || keys < queries)
    return false;
  if (shape.back() != keys || shape[shape.size() - 2] != queries) return false;
  for (int64_t i = 0; i < mask->num_elements(); ++i) {
    const bool sees = i % keys <= i / keys + keys - queries;
    if ((mask->get(i) != 0) != sees) return false;
  }
  return true;
}

bool AttentionFuser::take_mask(Scores& s, const Node& where) const {
  const std::optional<double> hidden = OpCall{r_.graph(), where}.scalar(2);
  if (!hidden || s.visible.valid() || s.causal) return false;
  s.visible = where.inputs[0];
  s.hidden = *hidden;
  return true;
}

// An Add of a bias, whichever operand it is: it is not what a product of two values makes.
bool AttentionFuser::take_bias(Scores& s, const Node& add, ValueId& data) const {
  if (s.bias.valid()) return false;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const Node* made = r_.producer(add.inputs[i]);
    const bool scores = made != nullptr && r_.uses(add.inputs[i]) == 1 &&
                        (made->op == "MatMul" || made->op == "Mul" || made->op == "Div");
    if (!scores || r_[add.inputs[i]].shape != r_[add.outputs[0]].shape) continue;
    data = add.inputs[i];
    s.bias = add.inputs[1 - i];
    return true;
  }
  return false;
}

// What softmax reads, followed to the product of queries and keys. A mask is applied last, a bias
// to what is scaled.
std::optional<Scores> AttentionFuser::scores_of(ValueId id) const {
  Scores s;
  if (const Node* where = only_made_by(id, "Where")) {
    if (!take_mask(s, *where)) return std::nullopt;
    id = where->inputs[1];
  }
  if (const Node* add = only_made_by(id, "Add"); add != nullptr && !take_bias(s, *add, id))
    return std::nullopt;
  for (const char* op : {"Mul", "Div"}) {
    const Node* scaled = only_made_by(id, op);
    if (scaled == nullptr) continue;
    const OpCall call{r_.graph(), *scaled};
    const bool first = op[0] == 'M' && call.scalar(0).has_value();
    const std::optional<double> factor = call.scalar(first ? 0 : 1);
    if (!factor) return std::nullopt;
    s.scale = op[0] == 'M' ? *factor : 1 / *factor;
    id = scaled->inputs[first ? 1 : 0];
    break;
  }
  const Node* product = only_made_by(id, "MatMul");
  if (product == nullptr) return std::nullopt;
  const OpCall call{r_.graph(), *product};
  if (call.sums() || call.integer("transA", 0) != 0 || call.integer("transB", 0) != 1 ||
      call.rank(0) != 4 || call.rank(1) != 4)
    return std::nullopt;
  s.query = product->inputs[0];
  s.key = product->inputs[1];
  if (s.visible.valid() && s.hidden <= kNever && is_causal(s, s.visible)) {
    s.causal = true;
    s.visible = {};
  }
  return s;
}

// The tensor [b, positions, heads, width] of which a value is a transposed slice.
std::optional<Heads> AttentionFuser::by_positions(ValueId id) const {
  const Node* transpose = r_.producer(id, "Transpose");
  if (transpose == nullptr || OpCall{r_.graph(), *transpose}.integers("perm") != kHeadsAndPositions)
    return std::nullopt;
  Heads heads{transpose->inputs[0]};
  const Node* slice = r_.producer(heads.of, "Slice");
  if (slice == nullptr) return heads;
  const OpCall call{r_.graph(), *slice};
  const auto of_one = [&](size_t i) -> std::optional<int64_t> {
    const auto found = call.constant_integers(i, "");
    return found.ok() && found->size() == 1 ? std::optional((*found)[0]) : std::nullopt;
  };
  const std::optional<int64_t> start = of_one(1), axis = of_one(3);
  const std::optional<int64_t> step = call.has(4) ? of_one(4) : 1;
  if (start.value_or(-1) < 0 || axis != 2 || step != 1) return heads;
  return Heads{slice->inputs[0], *start};
}

bool AttentionFuser::fuse(const Node& product) {
  const OpCall call{r_.graph(), product};
  if (call.sums() || call.integer("transA", 0) != 0 || call.integer("transB", 0) != 0 ||
      call.rank(0) != 4 || call.rank(1) != 4)
    return false;
  const Node* softmax = only_made_by(product.inputs[0], "Softmax");
  if (softmax == nullptr) return false;
  const OpCall weights{r_.graph(), *softmax};
  const Result<int64_t> axis = weights.axis("axis", -1, 4);
  if (!axis.ok() || *axis != 3) return false;
  std::optional<Scores> s = scores_of(softmax->inputs[0]);
  if (!s || r_[s->query].dtype != DType::kFloat32) return false;
  const ValueId value = product.inputs[1];
  const std::vector<int64_t> q = r_[s->query].shape, k = r_[s->key].shape, v = r_[value].shape;
  if (q[0] != k[0] || q[1] != k[1] || k[0] != v[0] || k[1] != v[1]) return false;
  const std::vector<int64_t> scores = {q[0], q[1], q[2], k[2]};
  for (const ValueId id : {s->bias, s->visible}) {
    if (!id.valid()) continue;
    const Result<std::vector<int64_t>> both = broadcast_shapes(scores, r_[id].shape);
    if (!both.ok() || *both != scores) return false;
  }

  Node node{"FusedAttention", product.name, {s->query, s->key, value}, {}, {}};
  node.attributes = {{"heads", q[1]}, {"scale", s->scale}};
  if (s->causal) node.attributes["causal"] = int64_t{1};
  if (s->bias.valid() || s->visible.valid()) node.inputs.push_back(s->bias);
  if (s->visible.valid()) {
    node.inputs.push_back(s->visible);
    node.attributes["hidden"] = s->hidden;
  }
  const std::optional<Heads> heads[] = {
      by_positions(s->query), by_positions(s->key), by_positions(value)};
  if (!std::ranges::all_of(heads, [](const auto& h) { return h.has_value(); })) {
    r_.replace(product.outputs[0], r_.add(std::move(node)));
    return true;
  }
  std::vector<int64_t> first;
  for (size_t i = 0; i < std::size(heads); ++i) {
    node.inputs[i] = heads[i]->of;
    first.push_back(heads[i]->first);
  }
  node.attributes["positions_first"] = int64_t{1};
  node.attributes["first_heads"] = first;
  const ValueId result = r_.add(std::move(node));
  transposed_[product.outputs[0]] = result;
  r_.replace(product.outputs[0], r_.add_transpose(result, kHeadsAndPositions));
  return true;
}

Graph AttentionFuser::run() && {
  std::vector<Node> nodes = r_.take_nodes();
  for (Node& node : nodes) {
    if (node.op == "Transpose" && transposed_.contains(node.inputs[0]) &&
        OpCall{r_.graph(), node}.integers("perm") == kHeadsAndPositions) {
      r_.replace(node.outputs[0], transposed_.at(node.inputs[0]));
      continue;
    }
    for (ValueId& id : node.inputs) id = r_.current(id);
    if (node.op != "MatMul" || !fuse(node)) r_.emit(std::move(node));
  }
  return std::move(r_).finish();
}

}  // namespace

Graph fuse_attention(Graph graph, const PassOptions& options) {
  // Products of 16 bits stay nodes, of which units take those that they can.
  if (options.narrow_type()) return graph;
  return AttentionFuser(std::move(graph)).run();
}

}  // namespace pruner
