// Elements of a graph's values, each computed on demand: node by node, just of what it depends on.
// The reference that kernels and whole modules are compared with; it shares no pass, no fusion and
// no schedule with them.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "tensor/tape_run.h"

namespace pruner {

class GraphElements {
 public:
  /// `known` holds the tensors of values that are given, such as the graph's inputs; constants need
  /// not be among them. The graph, whose nodes have been inferred, outlives this. Values of which
  /// most elements are needed are computed whole, on `jobs` threads.
  GraphElements(const Graph& graph, std::map<ValueId, Tensor> known, int jobs = 1);
  ~GraphElements();

  /// Elements of a value at row-major positions, in double precision, each node's result rounded to
  /// its type. Every value that they depend on is known or made by a node.
  std::vector<double> at(ValueId id, std::span<const int64_t> positions);

 private:
  struct Made;

  void fetch(ValueId id, std::span<const int64_t> positions, Word* words);
  const Tensor* known(ValueId id) const;
  const Tensor& whole(ValueId id);
  Made& made(ValueId id, size_t requested);

  const Graph& graph_;
  std::map<ValueId, Tensor> known_;
  std::map<ValueId, std::pair<const Node*, size_t>> makers_;  // with the place among its outputs
  std::map<ValueId, std::unique_ptr<Made>> made_;
  int jobs_;
};

}  // namespace pruner
