// How a pass makes a new graph from an old one: it walks the old nodes in order, emits the ones
// that stay, adds others, and says which value replaces which. Producers stay before consumers,
// names of inputs and outputs stay, types are inferred, and what nobody uses is gone at the end.
#pragma once

#include "graph/evaluate.h"
#include "graph/passes.h"

namespace pruner {

class Rewriter {
 public:
  explicit Rewriter(Graph graph);

  const Graph& graph() const { return graph_; }
  const Value& operator[](ValueId id) const { return graph_[id]; }

  /// The old nodes, in order, as they came in; their inputs are old values (see current()).
  std::vector<Node> take_nodes() { return std::exchange(graph_.nodes, {}); }
  /// The value that now stands for an old one.
  ValueId current(ValueId id) const;
  /// The node that makes a (current) value; null for inputs and constants.
  const Node* producer(ValueId id) const;
  /// The same where that is a call of `op`; else null.
  const Node* producer(ValueId id, std::string_view op) const;
  /// How many nodes read an old value, plus one if it is an output of the graph; 0 of a new one.
  int uses(ValueId id) const { return id.value < std::ssize(uses_) ? uses_[id.value] : 0; }

  /// Appends `node` with its inputs brought up to date. A node of constants becomes constants.
  void emit(Node node);
  /// Emits a new node with one output, named after `like`; gives the output.
  ValueId add(std::string op, std::vector<ValueId> inputs, Attributes attributes, std::string like);
  /// Emits `node` with a new value, named after the node, as its one output; gives it.
  ValueId add(Node node);
  ValueId add_constant(const std::string& name, Tensor tensor);
  /// A rank-one int64 constant.
  ValueId add_integers(const std::string& name, std::span<const int64_t> values);
  /// `input` under another shape; looks through a reshape that made it.
  ValueId add_reshape(ValueId input, std::span<const int64_t> shape);
  ValueId add_transpose(ValueId input, std::span<const int64_t> order);
  /// Emits a Slice of `data` along the dimensions from `first_axis` on, one for each of the starts
  /// and ends. The node has the name `name`, and the names of its constants begin with `name`.
  ValueId add_slice(ValueId data,
                    int64_t first_axis,
                    std::span<const int64_t> starts,
                    std::span<const int64_t> ends,
                    std::string name);

  /// Makes `now` stand for `old` from now on.
  void replace(ValueId old, ValueId now);

  /// The new graph.
  Graph finish();

 private:
  Graph graph_;
  std::vector<ValueId> current_;  // current value of each old value
  std::vector<int> producer_;     // index into graph_.nodes of each value's node, or -1
  std::vector<int> uses_;         // number of uses of each old value
};

}  // namespace pruner
