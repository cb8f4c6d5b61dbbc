// The types of a node's outputs, and their values when its inputs are known: shape inference,
// constant folding and the interpretation of whole graphs rest on these.
#pragma once

#include "graph/ops/op.h"

namespace pruner {

/// `node "conv1"`, or what it makes when it has no name.
std::string node_label(const Graph& graph, const Node& node);

/// Whether we work on tensors of such extents: no more than 2^36 elements, and none below 0.
bool is_tensor_shape(std::span<const int64_t> shape);

/// Whether the node stands for what a pipeline (graph/pipeline) does between stages: its result
/// is never known, even of constants.
bool is_of_pipeline(const Node& node);

/// Checks the node and sets the types of its outputs; what follows from shapes and small constants
/// (the arithmetic behind a Reshape) also gets its value.
Result<Unit> infer_node(Graph& graph, Node& node);

/// Whether a constant is one element other than 0, as a condition that holds.
bool is_true(const std::optional<Tensor>& constant);

/// Whether all inputs are constants (or the operator needs only their shapes), and kernels are not
/// to compute it all the same (RangeHints::computed).
bool is_constant_call(const Graph& graph, const Node& node);

/// The outputs of a node that was inferred, for inputs in its order (an absent one is empty).
std::vector<Tensor> evaluate_node(const Graph& graph,
                                  const Node& node,
                                  std::span<const Tensor> inputs);
/// The same for a node whose inputs are constants.
std::vector<Tensor> evaluate_constant_node(const Graph& graph, const Node& node);

/// The compute DAG of one output and the values that its placeholders stand for.
struct LoweredCall {
  ComputeDag dag;
  std::vector<ValueId> inputs;
};
LoweredCall lower_call(const OpCall& call);

/// A copy with dimension d of the result being dimension order[d] of `tensor`.
Tensor permuted(const Tensor& tensor, std::span<const int64_t> order);

}  // namespace pruner
