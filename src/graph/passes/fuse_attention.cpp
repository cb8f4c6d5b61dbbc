// Attention of heads,
//   MatMul(Softmax(hide(MatMul(q, k^T) * scale) + biases), v),
// becomes one FusedAttention, whose scores nothing outside of a kernel sees. If queries, keys or
// values are transposed slices of projections [b, positions, heads, width], FusedAttention reads
// the projections; if the queries are, it also writes what the transpose after it would. Heads of
// queries may share a head of keys and values. They are then rows of one product, between reshapes
// (functions/attention.h), or the shared head is repeated (HuggingFace's repeat_kv, torch's
// enable_gqa). The weights of a query that sees nothing are no numbers; the network may set them to
// zero (torch's scaled_dot_product_attention).
#include <algorithm>

#include "graph/ops/op.h"
#include "graph/passes.h"
#include "graph/rewriter.h"
#include "graph/rotation.h"
#include "target/attention_units.h"

namespace pruner {
namespace {

// A score that is this low or lower has an exponential of 0 beside any other.
constexpr double kNever = -1e30;

const std::vector<int64_t> kHeadsAndPositions = {0, 2, 1, 3};  // exchanged

// A query, key or value where it lies: [b, heads, positions, width], or with positions first.
struct Operand {
  ValueId data;
  bool positions_first = false;
  double scale = 1;  // factor of the elements
  int64_t heads = 0, positions = 0;

  /// Whether both orders are the same bytes.
  bool in_any_order() const { return heads == 1 || positions == 1; }
};

// The product of heads that makes scores, found under constant factors and reshapes.
struct Product {
  ValueId result;
  const Node* node = nullptr;
  double scale = 1;
};

struct Biased {
  ValueId scores, bias;
};

struct Scores {
  std::vector<int64_t> shape = {};  // [b, heads, queries, keys]
  ValueId query = {}, key = {};
  double scale = 1, hidden = 0;
  std::vector<ValueId> biases = {};
  ValueId visible = {};
  bool causal = false;
};

class AttentionFuser {
 public:
  AttentionFuser(Graph graph, const PassOptions& options)
      : r_(std::move(graph)), target_(options.target), units_(options.narrow_type()) {}
  Graph run() &&;

 private:
  // Returns the node that makes a value, if it is an `op` and no other node reads the value.
  const Node* only_made_by(ValueId id, std::string_view op) const {
    return r_.uses(id) == 1 ? r_.producer(id, op) : nullptr;
  }
  bool exchanges(const Node* node) const;
  bool is_product(const Node& node, bool transposed) const;
  bool is_causal(const Scores& s, ValueId mask) const;
  bool zeroes_nan(const Node& where) const;
  bool take_mask(Scores& s, const Node& where) const;
  std::optional<double> take_scale(const Node& node, ValueId& data) const;
  std::optional<Product> product_under(ValueId id) const;
  std::optional<Biased> biased(ValueId id) const;
  std::optional<Scores> scores_of(ValueId id) const;
  ValueId unrounded(ValueId weights) const;
  ValueId unrepeated(const Operand& o);
  Operand operand(ValueId id, bool scaled);
  std::pair<ValueId, int64_t> unsliced(ValueId id) const;
  bool fits(const Scores& s, const Operand& query, const Operand& key, const Operand& value) const;
  ValueId attention(Node node, std::span<const Operand> parts);
  bool fuse(const Node& product);
  bool cancels(const Node& node);

  Rewriter r_;
  const Target& target_;
  const std::optional<DType> units_;  // type to which a kernel on a GPU rounds its factors
};

// Whether the node is a transpose of heads and positions.
bool AttentionFuser::exchanges(const Node* node) const {
  return node != nullptr && exchanges_heads({r_.graph(), *node});
}

// Whether the node multiplies heads, with the second factor transposed or not.
bool AttentionFuser::is_product(const Node& node, bool transposed) const {
  const OpCall call{r_.graph(), node};
  return node.op == "MatMul" && !call.sums() && call.integer("transA", 0) == 0 &&
         (call.integer("transB", 0) != 0) == transposed && call.rank(0) == 4 && call.rank(1) == 4 &&
         std::ranges::equal(std::span(call.shape(0)).first(2), std::span(call.shape(1)).first(2));
}

// Whether a constant shows each query the keys up to its own place, counted from the last: a mask,
// or a bias of zeros and of what is lower than any score.
bool AttentionFuser::is_causal(const Scores& s, ValueId id) const {
  if (!id.valid() || !r_[id].constant) return false;
  const Tensor& mask = *r_[id].constant;
  const int64_t queries = s.shape[2], keys = s.shape[3];
  const std::vector<int64_t>& shape = mask.shape();
  if (shape.size() < 2 || mask.num_elements() != queries * keys || keys < queries) return false;
  if (shape.back() != keys || shape[shape.size() - 2] != queries) return false;
  const bool is_bias = mask.dtype() != DType::kBool;
  for (int64_t i = 0; i < mask.num_elements(); ++i) {
    const bool sees = i % keys <= i / keys + keys - queries;
    const double value = mask.get(i);
    const bool shown = is_bias ? value == 0 : value != 0,
               hidden = is_bias ? value <= kNever : !shown;
    if (!(sees ? shown : hidden)) return false;
  }
  return true;
}

// Whether `where` is Where(IsNaN(x), 0, x), as torch exports it, and nothing else reads x.
bool AttentionFuser::zeroes_nan(const Node& where) const {
  const Node* is_nan = only_made_by(where.inputs[0], "IsNaN");
  return is_nan != nullptr && OpCall{r_.graph(), where}.scalar(1) == 0 &&
         is_nan->inputs[0] == where.inputs[2] && r_.uses(where.inputs[2]) == 2;
}

bool AttentionFuser::take_mask(Scores& s, const Node& where) const {
  const std::optional<double> hidden = OpCall{r_.graph(), where}.scalar(2);
  if (!hidden || s.visible.valid() || s.causal) return false;
  s.visible = where.inputs[0];
  s.hidden = *hidden;
  return true;
}

// Returns the constant factor of a product or quotient, and sets `data` to the other operand.
std::optional<double> AttentionFuser::take_scale(const Node& node, ValueId& data) const {
  const OpCall call{r_.graph(), node};
  const bool first = node.op == "Mul" && call.scalar(0).has_value();
  const std::optional<double> factor = call.scalar(first ? 0 : 1);
  const size_t other = first ? 1 : 0;
  if (!factor || call.shape(other) != call.output().shape) return std::nullopt;
  data = node.inputs[other];
  return node.op == "Mul" ? *factor : 1 / *factor;
}

std::optional<Product> AttentionFuser::product_under(ValueId id) const {
  Product product{id};
  while (r_.uses(id) == 1) {
    product.result = id;
    product.node = r_.producer(id);
    if (product.node == nullptr) return std::nullopt;
    if (is_product(*product.node, true)) return product;
    if (product.node->op == "Mul" || product.node->op == "Div") {
      const std::optional<double> factor = take_scale(*product.node, id);
      if (!factor) return std::nullopt;
      product.scale *= *factor;
    } else if (product.node->op == "Reshape") {
      id = product.node->inputs[0];
    } else {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

// Returns the summands if `id` is a sum of scores, under which a product lies, and of a bias. The
// biases of positions and of a mask are often two.
std::optional<Biased> AttentionFuser::biased(ValueId id) const {
  const Node* add = only_made_by(id, "Add");
  if (add == nullptr) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    const ValueId scores = add->inputs[i];
    if (r_[scores].shape == r_[id].shape && (product_under(scores) || biased(scores)))
      return Biased{scores, add->inputs[1 - i]};
  }
  return std::nullopt;
}

// Follows the input of softmax back to the product of queries and keys. A mask is applied last,
// biases are added to the scaled scores.
std::optional<Scores> AttentionFuser::scores_of(ValueId id) const {
  Scores s{.shape = r_[id].shape};
  if (const Node* where = only_made_by(id, "Where")) {
    if (!take_mask(s, *where)) return std::nullopt;
    id = where->inputs[1];
  }
  std::optional<Product> product = product_under(id);
  for (std::optional<Biased> sum; !product && (sum = biased(id));) {
    s.biases.push_back(sum->bias);
    id = sum->scores;
    product = product_under(id);
  }
  // Heads that share keys may be rows of one product.
  if (!product || s.shape.size() != 4 || r_[id].shape != s.shape) return std::nullopt;
  const std::vector<int64_t>& rows = r_[product->result].shape;
  if (rows[0] != s.shape[0] || rows[3] != s.shape[3]) return std::nullopt;
  s.query = product->node->inputs[0];
  s.key = product->node->inputs[1];
  s.scale = product->scale;
  if (s.visible.valid() && s.hidden <= kNever && is_causal(s, s.visible)) {
    s.causal = true;
    s.visible = {};
  } else if (!s.visible.valid()) {
    s.causal = std::erase_if(s.biases, [&](ValueId bias) { return is_causal(s, bias); }) > 0;
  }
  return s;
}

// Returns the weights before a network of 16 bits rounds them: its units read them rounded anyway.
ValueId AttentionFuser::unrounded(ValueId weights) const {
  const Node* wide = only_made_by(weights, "Cast");
  const Node* narrow = wide != nullptr ? only_made_by(wide->inputs[0], "Cast") : nullptr;
  const bool rounds = narrow != nullptr && r_[wide->inputs[0]].dtype == units_ &&
                      r_[narrow->inputs[0]].dtype == r_[weights].dtype;
  return rounds ? narrow->inputs[0] : weights;
}

// Returns x of a Reshape(Expand(Reshape(x))) in which each head stands several times in a row.
ValueId AttentionFuser::unrepeated(const Operand& o) {
  const Node* joined = r_.producer(o.data, "Reshape");
  const Node* expand = joined != nullptr ? r_.producer(joined->inputs[0], "Expand") : nullptr;
  if (expand == nullptr) return o.data;
  const int64_t dim = o.positions_first ? 2 : 1;
  std::vector<int64_t> one = r_[expand->inputs[0]].shape, several = one;
  if (one.size() != 5 || one[dim + 1] != 1) return o.data;
  std::vector<int64_t> shape = one;
  shape.erase(shape.begin() + dim + 1);
  std::vector<int64_t> whole = shape;
  several[dim + 1] = r_[o.data].shape[dim] / one[dim];
  whole[dim] *= several[dim + 1];
  const bool repeated = r_[expand->outputs[0]].shape == several && r_[o.data].shape == whole;
  return repeated ? r_.add_reshape(expand->inputs[0], shape) : o.data;
}

Operand AttentionFuser::operand(ValueId id, bool scaled) {
  Operand o{id};
  if (const Node* transpose = r_.producer(id); exchanges(transpose))
    o = {transpose->inputs[0], true};
  // torch scales queries and keys.
  const Node* mul = scaled ? r_.producer(o.data, "Mul") : nullptr;
  if (mul != nullptr) o.scale = take_scale(*mul, o.data).value_or(1);
  o.data = unrepeated(o);
  const std::vector<int64_t>& shape = r_[o.data].shape;
  o.heads = shape[o.positions_first ? 2 : 1];
  o.positions = shape[o.positions_first ? 1 : 2];
  return o;
}

// Returns the tensor of which `id`, which has positions first, is a slice, and the slice's first
// head.
std::pair<ValueId, int64_t> AttentionFuser::unsliced(ValueId id) const {
  const Node* slice = r_.producer(id, "Slice");
  if (slice == nullptr) return {id, 0};
  const OpCall call{r_.graph(), *slice};
  const auto of_one = [&](size_t i) -> std::optional<int64_t> {
    const auto found = call.constant_integers(i, "");
    return found.ok() && found->size() == 1 ? std::optional((*found)[0]) : std::nullopt;
  };
  const std::optional<int64_t> start = of_one(1), axis = of_one(3);
  const std::optional<int64_t> step = call.has(4) ? of_one(4) : 1;
  if (start.value_or(-1) < 0 || axis != 2 || step != 1) return {id, 0};
  return {slice->inputs[0], *start};
}

bool AttentionFuser::fits(const Scores& s,
                          const Operand& query,
                          const Operand& key,
                          const Operand& value) const {
  for (const Operand* o : {&query, &key, &value}) {
    if (r_[o->data].shape[0] != s.shape[0] || r_[o->data].dtype != DType::kFloat32) return false;
  }
  if (query.heads != s.shape[1] || query.positions != s.shape[2] || key.heads != value.heads ||
      query.heads % key.heads != 0 || key.positions != s.shape[3] || value.positions != s.shape[3])
    return false;
  const AttentionHead head{
      query.positions, key.positions, r_[query.data].shape[3], r_[value.data].shape[3]};
  if (target_.is_gpu() && !has_attention_units(head, target_.gpu)) return false;
  const auto fits_scores = [&](ValueId id) {
    const Result<std::vector<int64_t>> both = broadcast_shapes(s.shape, r_[id].shape);
    return both.ok() && *both == s.shape;
  };
  return std::ranges::all_of(s.biases, fits_scores) &&
         (!s.visible.valid() || fits_scores(s.visible));
}

// Emits the node with `parts` as first inputs, each as it lies. Returns [b, heads, queries, width].
ValueId AttentionFuser::attention(Node node, std::span<const Operand> parts) {
  // An operand whose bytes are the same in both orders takes the order of the others.
  const bool all_first = std::ranges::any_of(parts, &Operand::positions_first) &&
                         std::ranges::all_of(parts, [](const Operand& o) {
                           return o.positions_first || o.in_any_order();
                         });
  std::vector<int64_t> positions_first, first_heads;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Operand& o = parts[i];
    const bool first = all_first || (o.positions_first && !o.in_any_order());
    ValueId data = o.data;
    int64_t first_head = 0;
    if (first != o.positions_first) {
      std::vector<int64_t> shape = r_[data].shape;
      std::swap(shape[1], shape[2]);
      data = r_.add_reshape(data, shape);
    }
    if (first) std::tie(data, first_head) = unsliced(data);
    node.inputs[i] = data;
    positions_first.push_back(first ? 1 : 0);
    first_heads.push_back(first_head);
  }
  if (std::ranges::count(positions_first, 0) == 3) return r_.add(std::move(node));
  node.attributes["positions_first"] = positions_first;
  node.attributes["first_heads"] = first_heads;
  const ValueId result = r_.add(std::move(node));
  return positions_first[0] != 0 ? r_.add_transpose(result, kHeadsAndPositions) : result;
}

bool AttentionFuser::fuse(const Node& product) {
  if (!is_product(product, false)) return false;
  ValueId weights = unrounded(product.inputs[0]);
  if (const Node* rows = only_made_by(weights, "Reshape")) weights = unrounded(rows->inputs[0]);
  const Node* where = only_made_by(weights, "Where");
  if (where != nullptr && !zeroes_nan(*where)) return false;
  const Node* softmax = where != nullptr ? r_.producer(where->inputs[2], "Softmax")
                                         : only_made_by(weights, "Softmax");
  if (softmax == nullptr || r_[weights].shape.size() != 4) return false;
  const Result<int64_t> axis = OpCall{r_.graph(), *softmax}.axis("axis", -1, 4);
  if (!axis.ok() || *axis != 3) return false;
  const std::optional<Scores> s = scores_of(softmax->inputs[0]);
  const std::vector<int64_t> rows = r_[product.inputs[0]].shape;
  if (!s || rows[0] != s->shape[0] || rows[3] != s->shape[3]) return false;
  // Rows of one product become heads again.
  const std::vector<int64_t> heads = {s->shape[0], s->shape[1], s->shape[2], r_[s->query].shape[3]};
  const Operand parts[] = {operand(r_.add_reshape(s->query, heads), true),
                           operand(s->key, true),
                           operand(product.inputs[1], false)};
  if (!fits(*s, parts[0], parts[1], parts[2])) return false;

  Node node{"FusedAttention", product.name, {{}, {}, {}}, {}, {}};
  node.attributes = {{"heads", s->shape[1]}, {"scale", s->scale * parts[0].scale * parts[1].scale}};
  if (const int64_t sharing = s->shape[1] / parts[1].heads; sharing > 1)
    node.attributes["sharing"] = sharing;
  if (s->causal) node.attributes["causal"] = int64_t{1};
  if (where != nullptr) node.attributes["nan_is_zero"] = int64_t{1};
  ValueId bias;
  for (const ValueId id : s->biases)
    bias = bias.valid() ? r_.add("Add", {bias, id}, {}, product.name) : id;
  if (bias.valid() || s->visible.valid()) node.inputs.push_back(bias);
  if (s->visible.valid()) {
    node.inputs.push_back(s->visible);
    node.attributes["hidden"] = s->hidden;
  }
  const ValueId result = attention(std::move(node), parts);
  r_.replace(product.outputs[0], r_.add_reshape(result, r_[product.outputs[0]].shape));
  return true;
}

// Drops a reshape or transpose that undoes the reshape or transpose after a result.
bool AttentionFuser::cancels(const Node& node) {
  const Node* before = node.inputs.empty() ? nullptr : r_.producer(node.inputs[0], node.op);
  if (before == nullptr) return false;
  const bool parts =
      node.op == "Reshape" && r_[before->inputs[0]].shape == r_[node.outputs[0]].shape;
  if (!parts && !(exchanges(&node) && exchanges(before))) return false;
  r_.replace(node.outputs[0], before->inputs[0]);
  return true;
}

Graph AttentionFuser::run() && {
  for (Node& node : r_.take_nodes()) {
    for (ValueId& id : node.inputs) id = r_.current(id);
    if (!cancels(node) && !fuse(node)) r_.emit(std::move(node));
  }
  return std::move(r_).finish();
}

}  // namespace

Graph fuse_attention(Graph graph, const PassOptions& options) {
  // On CPUs products of 16 bits stay nodes, of which units take those that they can. On GPUs one
  // kernel multiplies 16-bit operands (space/gpu/attention.h); others stay kernels of their own.
  if (options.narrow_type().has_value() != options.target.is_gpu()) return graph;
  return AttentionFuser(std::move(graph), options).run();
}

}  // namespace pruner
