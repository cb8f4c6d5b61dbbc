#include "graph/interpret_elements.h"

#include "graph/evaluate.h"
#include "graph/ops/op.h"
#include "support/check.h"
#include "tensor/element_pages.h"
#include "tensor/interpreter.h"

namespace pruner {

/// A value that a node computes, with the elements that were computed so far.
struct GraphElements::Made {
  LoweredCall call;
  StageId stage;
  std::unique_ptr<ElementInterpreter> interpreter;
  ElementPages elements{0};  // those that were computed so far
};

GraphElements::GraphElements(const Graph& graph, std::map<ValueId, Tensor> known, int jobs)
    : graph_(graph), known_(std::move(known)), jobs_(jobs) {
  for (const Node& node : graph.nodes)
    for (size_t i = 0; i < node.outputs.size(); ++i) makers_.try_emplace(node.outputs[i], &node, i);
}

GraphElements::~GraphElements() = default;

std::vector<double> GraphElements::at(ValueId id, std::span<const int64_t> positions) {
  std::vector<Word> words(positions.size());
  fetch(id, positions, words.data());
  std::vector<double> values;
  for (const Word word : words) values.push_back(number_of(graph_[id].dtype, word));
  return values;
}

const Tensor* GraphElements::known(ValueId id) const {
  if (const auto given = known_.find(id); given != known_.end()) return &given->second;
  return graph_[id].constant ? &*graph_[id].constant : nullptr;
}

void GraphElements::fetch(ValueId id, std::span<const int64_t> positions, Word* words) {
  if (const Tensor* tensor = known(id)) {
    for (size_t i = 0; i < positions.size(); ++i) words[i] = word_of(*tensor, positions[i]);
    return;
  }
  const auto maker = makers_.find(id);
  CHECK(maker != makers_.end()) << "nothing makes \"" << graph_[id].name << "\"";
  const auto& [node, place] = maker->second;
  const GraphOp& op = *find_graph_op(node->op);
  // A view has the elements of its input in the same row-major order.
  if (op.fusion == Fusion::kAlias) return fetch(node->inputs[0], positions, words);
  if (op.fusion == Fusion::kConstant || op.routine != nullptr) {
    whole(id);
    return fetch(id, positions, words);
  }
  Made& value = made(id, positions.size());
  std::vector<int64_t> missing;
  for (const int64_t position : positions)
    if (value.elements.find(position) == nullptr && (missing.empty() || missing.back() != position))
      missing.push_back(position);
  if (!missing.empty()) {
    std::vector<Word> computed(missing.size());
    value.interpreter->evaluate(value.stage, missing, computed.data());
    for (size_t i = 0; i < missing.size(); ++i) value.elements.store(missing[i], computed[i]);
  }
  for (size_t i = 0; i < positions.size(); ++i) words[i] = *value.elements.find(positions[i]);
}

GraphElements::Made& GraphElements::made(ValueId id, size_t requested) {
  std::unique_ptr<Made>& value = made_[id];
  if (value) return *value;
  const auto& [node, place] = makers_.at(id);
  value = std::make_unique<Made>();
  value->call = lower_call({graph_, *node, place});
  value->stage = value->call.dag.outputs().front();
  double reads = static_cast<double>(requested);  // most reads of one input
  for (const Stage& stage : value->call.dag.stages)
    for (const Iterator& axis : stage.reduce_axes) reads *= static_cast<double>(axis.extent);
  constexpr double kMost = 0.25;  // share of an input's elements from which all are computed
  std::vector<const Tensor*> tensors;
  for (const ValueId input : value->call.inputs) {
    const auto elements = static_cast<double>(element_count(graph_[input].shape));
    if (known(input) == nullptr && reads >= kMost * elements) whole(input);
    tensors.push_back(known(input));
  }
  value->interpreter = std::make_unique<ElementInterpreter>(
      value->call.dag,
      tensors,
      [this, inputs = value->call.inputs](size_t i,
                                          std::span<const int64_t> positions,
                                          Word* words) { fetch(inputs[i], positions, words); });
  value->elements = ElementPages(element_count(graph_[id].shape));
  return *value;
}

const Tensor& GraphElements::whole(ValueId id) {
  if (const Tensor* tensor = known(id)) return *tensor;
  const auto maker = makers_.find(id);
  CHECK(maker != makers_.end()) << "nothing makes \"" << graph_[id].name << "\"";
  const auto& [node, place] = maker->second;
  const GraphOp& op = *find_graph_op(node->op);
  const OpCall call{graph_, *node, place};
  if (op.fusion == Fusion::kAlias)
    return known_.emplace(id, whole(node->inputs[0]).reshaped(graph_[id].shape)).first->second;
  if (op.fusion == Fusion::kConstant)
    return known_.emplace(id, evaluate_constant(call)).first->second;
  if (op.routine != nullptr) {
    std::vector<Tensor> inputs;
    for (const ValueId input : node->inputs)
      inputs.push_back(input.valid() ? whole(input) : Tensor());
    return known_.emplace(id, run_routine(call, inputs)).first->second;
  }
  const LoweredCall lowered = lower_call(call);
  std::vector<Tensor> inputs;
  for (const ValueId input : lowered.inputs) inputs.push_back(whole(input));
  return known_.emplace(id, interpret(lowered.dag, inputs, jobs_).front()).first->second;
}

}  // namespace pruner
