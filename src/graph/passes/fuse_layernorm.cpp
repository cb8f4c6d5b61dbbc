// Layer normalisation as exporters write it before opset 17,
//   d = x - ReduceMean(x);  y = d / Sqrt(ReduceMean(d * d) + epsilon) * scale + bias,
// becomes one LayerNormalization node, and before opset 23
//   y = x / Sqrt(ReduceMean(x * x) + epsilon) * scale
// one RMSNormalization. Sums are in an order of their own, and a quotient becomes a product with an
// inverse root. A result is off by the error of its sums and 3 units of the last place. A result
// that an operator with jumps reads is fused, too, since the order of a mean's terms is open.
#include <algorithm>

#include "graph/passes.h"
#include "graph/rewriter.h"

namespace pruner {

// Returns the first axis of a ReduceMean over the trailing dimensions that keeps the dimensions.
static std::optional<int64_t> trailing_mean(const Rewriter& r, const Node* mean) {
  if (mean == nullptr || mean->inputs.size() < 2) return std::nullopt;
  const OpCall call{r.graph(), *mean};
  if (call.integer("keepdims", 1) == 0) return std::nullopt;
  const Result<std::vector<int64_t>> axes =
      normal_axes(*call.constant_integers(1, "axes"), call.rank());
  if (!axes.ok() || axes->empty() || axes->back() != call.rank() - 1) return std::nullopt;
  const int64_t first = call.rank() - static_cast<int64_t>(axes->size());
  if (axes->front() != first) return std::nullopt;
  return first;
}

namespace {

// (x - mean) / sqrt(variance + epsilon) over the dimensions from `axis` on.
struct Normalized {
  ValueId x;
  int64_t axis;
  double epsilon;
};

}  // namespace

// Returns x if `d` is x - mean(x).
static std::optional<ValueId> centered(const Rewriter& r, ValueId d, int64_t axis) {
  const Node* sub = r.producer(d, "Sub");
  if (sub == nullptr) return std::nullopt;
  const Node* mean = r.producer(sub->inputs[1], "ReduceMean");
  if (trailing_mean(r, mean) != axis || mean->inputs[0] != sub->inputs[0]) return std::nullopt;
  return sub->inputs[0];
}

// Returns d if `id` is the square of d: Pow(d, 2) or Mul(d, d).
static std::optional<ValueId> squared(const Rewriter& r, ValueId id) {
  const Node* pow = r.producer(id, "Pow");
  if (pow != nullptr && OpCall{r.graph(), *pow}.scalar(1) == 2.0) return pow->inputs[0];
  const Node* mul = r.producer(id, "Mul");
  if (mul != nullptr && mul->inputs[0] == mul->inputs[1]) return mul->inputs[0];
  return std::nullopt;
}

// Returns the Sqrt node whose inverse, 1 / root, `id` is; null if there is none.
static const Node* inverted_root(const Rewriter& r, ValueId id) {
  const Node* inverse = r.producer(id, "Reciprocal");
  if (inverse != nullptr) return r.producer(inverse->inputs[0], "Sqrt");
  inverse = r.producer(id, "Div");
  const bool of_one = inverse != nullptr && OpCall{r.graph(), *inverse}.scalar(0) == 1.0;
  return of_one ? r.producer(inverse->inputs[1], "Sqrt") : nullptr;
}

namespace {

// x / root; `root` is a Sqrt node, null if there is no quotient.
struct Quotient {
  ValueId x;
  const Node* root = nullptr;
};

}  // namespace

// Matches Div(x, root), or Mul of x and 1 / root.
static Quotient match_quotient(const Rewriter& r, ValueId id) {
  if (const Node* div = r.producer(id, "Div"))
    return {div->inputs[0], r.producer(div->inputs[1], "Sqrt")};
  const Node* mul = r.producer(id, "Mul");
  if (mul == nullptr) return {};
  for (const size_t i : {size_t{0}, size_t{1}}) {
    if (const Node* root = inverted_root(r, mul->inputs[i])) return {mul->inputs[1 - i], root};
  }
  return {};
}

// Matches x / sqrt(mean(y * y) + epsilon); the second value is y.
static std::optional<std::pair<Normalized, ValueId>> match_scaled(const Rewriter& r, ValueId id) {
  const auto [x, root] = match_quotient(r, id);
  const Node* add = root != nullptr ? r.producer(root->inputs[0], "Add") : nullptr;
  if (add == nullptr) return std::nullopt;
  const OpCall sum{r.graph(), *add};
  const bool epsilon_first = sum.scalar(0).has_value();
  const std::optional<double> epsilon = sum.scalar(epsilon_first ? 0 : 1);
  const Node* mean = r.producer(add->inputs[epsilon_first ? 1 : 0], "ReduceMean");
  const std::optional<int64_t> axis = trailing_mean(r, mean);
  if (!epsilon || !axis) return std::nullopt;
  const std::optional<ValueId> y = squared(r, mean->inputs[0]);
  if (!y) return std::nullopt;
  return std::pair(Normalized{x, *axis, *epsilon}, *y);
}

static std::optional<Normalized> match_layer_norm(const Rewriter& r, ValueId id) {
  const auto scaled = match_scaled(r, id);
  if (!scaled) return std::nullopt;
  auto [n, d] = *scaled;
  const std::optional<ValueId> x = centered(r, n.x, n.axis);
  if (!x || centered(r, d, n.axis) != x) return std::nullopt;
  n.x = *x;
  return n;
}

static std::optional<Normalized> match_rms_norm(const Rewriter& r, ValueId id) {
  const auto scaled = match_scaled(r, id);
  if (!scaled || scaled->first.x != scaled->second) return std::nullopt;
  // This is a layer norm before its bias.
  if (centered(r, scaled->second, scaled->first.axis)) return std::nullopt;
  return scaled->first;
}

// Finds the operand that is a constant of no more dimensions than the other, and the other operand.
static bool split_operand(const Rewriter& r, const Node& node, ValueId& data, ValueId& constant) {
  const size_t c = r[node.inputs[0]].constant ? 0 : 1;
  data = node.inputs[1 - c];
  constant = node.inputs[c];
  return r[constant].constant && r[constant].shape.size() <= r[data].shape.size();
}

static std::optional<Node> layer_norm_of(const Rewriter& r, const Node& add) {
  ValueId scaled, bias, unit, scale;
  if (!split_operand(r, add, scaled, bias)) return std::nullopt;
  const Node* mul = r.producer(scaled, "Mul");
  if (mul == nullptr || !split_operand(r, *mul, unit, scale)) return std::nullopt;
  const std::optional<Normalized> n = match_layer_norm(r, unit);
  if (!n) return std::nullopt;
  return Node{"LayerNormalization",
              add.name,
              {n->x, scale, bias},
              add.outputs,
              {{"axis", n->axis}, {"epsilon", n->epsilon}}};
}

static std::optional<Node> rms_norm_of(const Rewriter& r, const Node& mul) {
  ValueId unit, scale;
  if (!split_operand(r, mul, unit, scale)) return std::nullopt;
  const std::optional<Normalized> n = match_rms_norm(r, unit);
  if (!n) return std::nullopt;
  return Node{"RMSNormalization",
              mul.name,
              {n->x, scale},
              mul.outputs,
              {{"axis", n->axis}, {"epsilon", n->epsilon}}};
}

Graph fuse_layernorm(Graph graph) {
  Rewriter r(std::move(graph));
  for (Node& node : r.take_nodes()) {
    for (ValueId& id : node.inputs) id = r.current(id);
    std::optional<Node> norm;
    if (node.op == "Add") norm = layer_norm_of(r, node);
    if (node.op == "Mul") norm = rms_norm_of(r, node);
    const bool fits = norm && r[norm->inputs[0]].shape == r[node.outputs[0]].shape;
    r.emit(fits ? *std::move(norm) : std::move(node));
  }
  return r.finish();
}

}  // namespace pruner
