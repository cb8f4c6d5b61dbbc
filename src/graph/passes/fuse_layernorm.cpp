// Layer normalisation as exporters write it before opset 17,
//   d = x - ReduceMean(x);  y = d / Sqrt(ReduceMean(d * d) + epsilon) * scale + bias,
// becomes one LayerNormalization node.
#include <algorithm>

#include "graph/passes.h"
#include "graph/rewriter.h"

namespace pruner {

// First axis of a ReduceMean over the trailing dimensions that keeps them.
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

// x - mean(x): gives x.
static std::optional<ValueId> centered(const Rewriter& r, ValueId d, int64_t axis) {
  const Node* sub = r.producer(d, "Sub");
  if (sub == nullptr) return std::nullopt;
  const Node* mean = r.producer(sub->inputs[1], "ReduceMean");
  if (trailing_mean(r, mean) != axis || mean->inputs[0] != sub->inputs[0]) return std::nullopt;
  return sub->inputs[0];
}

// What is squared: Pow(d, 2) or Mul(d, d).
static std::optional<ValueId> squared(const Rewriter& r, ValueId id) {
  const Node* pow = r.producer(id, "Pow");
  if (pow != nullptr && OpCall{r.graph(), *pow}.scalar(1) == 2.0) return pow->inputs[0];
  const Node* mul = r.producer(id, "Mul");
  if (mul != nullptr && mul->inputs[0] == mul->inputs[1]) return mul->inputs[0];
  return std::nullopt;
}

static std::optional<Normalized> match_normalized(const Rewriter& r, ValueId id) {
  const Node* div = r.producer(id, "Div");
  const Node* sqrt = div != nullptr ? r.producer(div->inputs[1], "Sqrt") : nullptr;
  const Node* add = sqrt != nullptr ? r.producer(sqrt->inputs[0], "Add") : nullptr;
  if (add == nullptr) return std::nullopt;
  const OpCall sum{r.graph(), *add};
  const bool epsilon_first = sum.scalar(0).has_value();
  const std::optional<double> epsilon = sum.scalar(epsilon_first ? 0 : 1);
  const Node* variance = r.producer(add->inputs[epsilon_first ? 1 : 0], "ReduceMean");
  const std::optional<int64_t> axis = trailing_mean(r, variance);
  if (!epsilon || !axis) return std::nullopt;
  const std::optional<ValueId> d = squared(r, variance->inputs[0]);
  const std::optional<ValueId> x = centered(r, div->inputs[0], *axis);
  if (!d || !x || centered(r, *d, *axis) != x) return std::nullopt;
  return Normalized{*x, *axis, *epsilon};
}

// The operand that is a constant over dimensions from `axis` on, and the other one.
static bool split_operand(const Rewriter& r, const Node& node, ValueId& data, ValueId& constant) {
  const size_t c = r[node.inputs[0]].constant ? 0 : 1;
  data = node.inputs[1 - c];
  constant = node.inputs[c];
  return r[constant].constant && r[constant].shape.size() <= r[data].shape.size();
}

Graph fuse_layernorm(Graph graph) {
  Rewriter r(std::move(graph));
  for (Node& node : r.take_nodes()) {
    for (ValueId& id : node.inputs) id = r.current(id);
    ValueId scaled, bias, unit, scale;
    if (node.op == "Add" && split_operand(r, node, scaled, bias)) {
      const Node* mul = r.producer(scaled, "Mul");
      const bool fits = mul != nullptr && split_operand(r, *mul, unit, scale);
      if (const auto n = fits ? match_normalized(r, unit) : std::nullopt;
          n && r[n->x].shape == r[node.outputs[0]].shape) {
        node = Node{"LayerNormalization",
                    node.name,
                    {n->x, scale, bias},
                    node.outputs,
                    {{"axis", n->axis}, {"epsilon", n->epsilon}}};
      }
    }
    r.emit(std::move(node));
  }
  return r.finish();
}

}  // namespace pruner
