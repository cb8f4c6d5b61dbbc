#include "graph/rewriter.h"

#include <algorithm>
#include <numeric>

#include "support/check.h"

namespace pruner {

static size_t slot(ValueId id) { return static_cast<size_t>(id.value); }

Rewriter::Rewriter(Graph graph) : graph_(std::move(graph)) {
  const size_t n = graph_.values.size();
  current_.resize(n);
  for (size_t i = 0; i < n; ++i) current_[i] = ValueId{static_cast<int32_t>(i)};
  producer_.assign(n, -1);
  uses_.assign(n, 0);
  for (const Node& node : graph_.nodes) {
    for (const ValueId id : node.inputs) {
      if (id.valid()) ++uses_[slot(id)];
    }
  }
  for (const ValueId id : graph_.outputs) ++uses_[slot(id)];
}

ValueId Rewriter::current(ValueId id) const {
  while (id.valid() && slot(id) < current_.size() && current_[slot(id)] != id)
    id = current_[slot(id)];
  return id;
}

const Node* Rewriter::producer(ValueId id) const {
  if (!id.valid() || slot(id) >= producer_.size() || producer_[slot(id)] < 0) return nullptr;
  return &graph_.nodes[producer_[slot(id)]];
}

const Node* Rewriter::producer(ValueId id, std::string_view op) const {
  const Node* node = producer(id);
  return node != nullptr && node->op == op ? node : nullptr;
}

void Rewriter::emit(Node node) {
  for (ValueId& id : node.inputs) id = current(id);
  const Result<Unit> inferred = infer_node(graph_, node);
  CHECK(inferred.ok()) << inferred.error().message();
  const bool known = std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) {
    return graph_[id].constant.has_value();
  });
  if (known) return;
  if (is_constant_call(graph_, node)) {
    std::vector<Tensor> tensors = evaluate_constant_node(graph_, node);
    for (size_t i = 0; i < tensors.size(); ++i) {
      graph_[node.outputs[i]].constant = std::move(tensors[i]);
    }
    return;
  }
  producer_.resize(graph_.values.size(), -1);
  for (const ValueId id : node.outputs) producer_[slot(id)] = static_cast<int>(graph_.nodes.size());
  graph_.nodes.push_back(std::move(node));
}

ValueId Rewriter::add(std::string op,
                      std::vector<ValueId> inputs,
                      Attributes attributes,
                      std::string like) {
  return add({std::move(op), std::move(like), std::move(inputs), {}, std::move(attributes)});
}

ValueId Rewriter::add(Node node) {
  const ValueId out{static_cast<int32_t>(graph_.values.size())};
  graph_.values.push_back({node.name + "/" + node.op, DType::kFloat32, {}, std::nullopt});
  node.outputs = {out};
  emit(std::move(node));
  return out;
}

ValueId Rewriter::add_constant(const std::string& name, Tensor tensor) {
  graph_.values.push_back({name, tensor.dtype(), tensor.shape(), tensor});
  return ValueId{static_cast<int32_t>(graph_.values.size()) - 1};
}

ValueId Rewriter::add_integers(const std::string& name, std::span<const int64_t> values) {
  Tensor tensor(DType::kInt64, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.values<int64_t>().begin());
  return add_constant(name, std::move(tensor));
}

ValueId Rewriter::add_reshape(ValueId input, std::span<const int64_t> shape) {
  const Node* before = producer(input);
  if (before != nullptr && before->op == "Reshape") input = before->inputs[0];
  const std::string name = graph_[input].name;
  if (std::ranges::equal(shape, graph_[input].shape)) return input;
  const ValueId target = add_integers(name + "/shape", shape);
  return add("Reshape", {input, target}, {}, name);
}

ValueId Rewriter::add_transpose(ValueId input, std::span<const int64_t> order) {
  if (std::is_sorted(order.begin(), order.end())) return input;
  return add("Transpose",
             {input},
             {{"perm", std::vector<int64_t>(order.begin(), order.end())}},
             graph_[input].name);
}

ValueId Rewriter::add_slice(ValueId data,
                            int64_t first_axis,
                            std::span<const int64_t> starts,
                            std::span<const int64_t> ends,
                            std::string name) {
  std::vector<int64_t> axes(starts.size());
  std::iota(axes.begin(), axes.end(), first_axis);
  const ValueId from = add_integers(name + "/starts", starts);
  const ValueId to = add_integers(name + "/ends", ends);
  const ValueId along = add_integers(name + "/axes", axes);
  return add("Slice", {data, from, to, along}, {}, std::move(name));
}

void Rewriter::replace(ValueId old, ValueId now) {
  CHECK(graph_[old].shape == graph_[now].shape && graph_[old].dtype == graph_[now].dtype)
      << graph_[old].name << " by " << graph_[now].name;
  if (old != now) current_[slot(old)] = now;
}

Graph Rewriter::finish() {
  std::vector<bool> named(graph_.values.size(), false);
  for (const ValueId input : graph_.inputs) named[slot(input)] = true;
  for (const ValueId output : graph_.outputs) named[slot(output)] = true;
  // The value that stands for an output takes the output's name. A value that has a name to keep
  // (an input, another output) cannot: an Identity makes the output of the value.
  for (ValueId& output : graph_.outputs) {
    const ValueId now = current(output);
    if (now == output) continue;
    const std::string name = graph_[output].name;
    const bool taken = graph_[now].constant || named[slot(now)];
    if (!taken) {
      output = now;
      graph_[now].name = name;
    } else if (graph_[now].constant) {
      graph_[output].constant = graph_[now].constant;
    } else {
      graph_.nodes.push_back({"Identity", name, {now}, {output}, {}});
    }
    named[slot(output)] = true;
  }
  return remove_dead(std::move(graph_));
}

}  // namespace pruner
