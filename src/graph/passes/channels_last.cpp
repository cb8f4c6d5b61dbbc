// Puts every convolution and pool into channels-last form, between two transposes that
// sink_transposes then cancels against its neighbours'. Constant weights are laid out anew here.
#include <algorithm>

#include "graph/passes.h"
#include "graph/rewriter.h"

namespace pruner {

// [co, ci/g, kernel...] to [kernel..., ci/g, co]; depthwise to [kernel..., c, multiplier].
static ValueId conv_weight(Rewriter& r, ValueId weight, int64_t groups, int64_t channels) {
  const auto rank = static_cast<int64_t>(r[weight].shape.size());
  std::vector<int64_t> order;
  for (int64_t d = 2; d < rank; ++d) order.push_back(d);
  order.insert(order.end(), {1, 0});
  const ValueId last = r.add_transpose(weight, order);
  if (groups == 1 || groups != channels) return last;
  std::vector<int64_t> shape = r[last].shape;
  shape.end()[-2] = groups;
  shape.end()[-1] /= groups;
  return r.add_reshape(last, shape);
}

// [ci, co/g, kernel...] to [kernel..., ci/g, co], where co is the group and its channel.
static ValueId transposed_weight(Rewriter& r, ValueId weight, int64_t groups) {
  std::vector<int64_t> split = r[weight].shape;
  split[0] /= groups;
  split.insert(split.begin(), groups);
  std::vector<int64_t> order;
  for (size_t d = 3; d < split.size(); ++d) order.push_back(static_cast<int64_t>(d));
  order.insert(order.end(), {1, 0, 2});
  const ValueId last = r.add_transpose(r.add_reshape(weight, split), order);
  std::vector<int64_t> shape = r[last].shape;
  shape.end()[-2] *= shape.back();
  shape.pop_back();
  return r.add_reshape(last, shape);
}

Graph channels_last(Graph graph) {
  static constexpr std::string_view kOps[] = {"AveragePool",
                                              "Conv",
                                              "ConvTranspose",
                                              "GlobalAveragePool",
                                              "GlobalMaxPool",
                                              "LRN",
                                              "MaxPool"};
  Rewriter r(std::move(graph));
  std::map<ValueId, ValueId> transposed;  // one transpose for all readers of a value
  for (Node& node : r.take_nodes()) {
    if (std::find(std::begin(kOps), std::end(kOps), node.op) == std::end(kOps) ||
        node.attributes.contains("channels_last") || node.first_output > 0) {
      r.emit(std::move(node));
      continue;
    }
    for (ValueId& id : node.inputs) id = r.current(id);
    const std::vector<int64_t> shape = r[node.inputs[0]].shape;
    const auto rank = static_cast<int64_t>(shape.size());
    const int64_t groups = OpCall{r.graph(), node}.integer("group", 1);
    if (node.op == "Conv") node.inputs[1] = conv_weight(r, node.inputs[1], groups, shape[1]);
    if (node.op == "ConvTranspose") node.inputs[1] = transposed_weight(r, node.inputs[1], groups);
    if (node.inputs.size() > 2) {
      // [co] becomes [1, 1..., co], which broadcasts to channels-last data.
      std::vector<int64_t> bias(shape.size(), 1);
      bias.back() = element_count(r[node.inputs[2]].shape);
      node.inputs[2] = r.add_reshape(node.inputs[2], bias);
    }
    const auto [it, fresh] = transposed.try_emplace(node.inputs[0]);
    if (fresh) it->second = r.add_transpose(node.inputs[0], channels_last_order(rank));
    node.inputs[0] = it->second;
    node.attributes["channels_last"] = int64_t{1};
    const ValueId made = r.add(node.op, node.inputs, node.attributes, node.name);
    r.replace(node.outputs[0], r.add_transpose(made, channels_first_order(rank)));
  }
  return r.finish();
}

}  // namespace pruner
