// Puts convolutions and pools into channels-last form, between two transposes that sink_transposes
// then cancels against neighbouring transposes. Constant weights are laid out anew here. Images
// stay as they lie if all nodes between the network's inputs and outputs are as quick along rows.
#include <algorithm>
#include <numeric>

#include "graph/ops/window.h"
#include "graph/passes.h"
#include "graph/rewriter.h"

namespace pruner {

// Convolutions of so many channels over images as they lie took 0.46 to 1.1 of their time between
// two transposes (3x3 to 7x7, AVX-512). Convolutions of 8 to 16 channels took 0.5 to
// 1.3 of the time; with AVX2, a convolution of 3 channels took 2.2.
static constexpr int64_t kFewChannels = 4;

// Lays [co, ci/g, kernel...] out as [kernel..., ci/g, co], or depthwise as [kernel..., c,
// multiplier].
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

// Lays [ci, co/g, kernel...] out as [kernel..., ci/g, co]; co is the group and its channel.
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

// Channels too few to fill a vector are summed along rows as quickly, if masks are cheap and
// registers many.
static bool sums_few_channels(const OpCall& call, const PassOptions& options) {
  return call.node.op == "Conv" && channels(call) <= kFewChannels &&
         options.target.masked_vectors && !options.narrow_type() &&
         call.input(0).dtype == DType::kFloat32;
}

// Whether the window pads. The lanes of a row then have different taps in padding, which masked
// loads leave out.
static bool pads(const OpCall& call) {
  std::vector<int64_t> kernel = call.integers("kernel_shape");
  if (call.node.op == "Conv") kernel.assign(call.shape(1).begin() + 2, call.shape(1).end());
  const Window window = *window_of(call, kernel);
  const auto padded = [](int64_t pad) { return pad > 0; };
  return std::ranges::any_of(window.pad_before, padded) ||
         std::ranges::any_of(window.pad_after, padded);
}

// Whether a window over images [n, c, spatial...] is as quick as one over channels-last images.
static bool is_quick_along_rows(const OpCall& call, const PassOptions& options) {
  const std::string& op = call.node.op;
  const Target& target = options.target;
  if (target.is_gpu() || channels_last(call) || call.node.first_output > 0) return false;
  if (op == "GlobalAveragePool" || op == "GlobalMaxPool") return true;
  if (sums_few_channels(call, options)) return true;
  const bool window = op == "AveragePool" || op == "MaxPool" || is_depthwise(call);
  return window && (target.isa == Isa::kX86 || !pads(call));
}

namespace {

// Sets of values. Nodes that are right for any order of dimensions join the values that they read
// and make: element-wise nodes and windows along rows. A set stays as it lies if no other node
// reads or makes one of its values.
class Regions {
 public:
  Regions(const Graph& graph, const PassOptions& options) : parent_(graph.values.size()) {
    std::iota(parent_.begin(), parent_.end(), 0);
    std::vector<ValueId> touched;
    for (const Node& node : graph.nodes) {
      const bool joins = find_graph_op(node.op)->fusion <= Fusion::kBroadcast ||
                         is_quick_along_rows({graph, node}, options);
      std::vector<ValueId> values = node.outputs;
      for (const ValueId id : node.inputs)
        if (id.valid() && !graph[id].constant) values.push_back(id);
      for (const ValueId id : values) joins ? join(id, values[0]) : touched.push_back(id);
    }
    moves_.resize(parent_.size(), false);
    for (const ValueId id : touched) moves_[root(id)] = true;
  }

  bool stays(ValueId id) { return !moves_[root(id)]; }

 private:
  size_t root(ValueId id) {
    auto at = static_cast<size_t>(id.value);
    while (parent_[at] != at) at = parent_[at] = parent_[parent_[at]];
    return at;
  }
  void join(ValueId a, ValueId b) { parent_[root(a)] = root(b); }

  std::vector<size_t> parent_;  // union-find
  std::vector<bool> moves_;     // whether the set changes its order, at its root
};

}  // namespace

Graph channels_last(Graph graph, const PassOptions& options) {
  static constexpr std::string_view kOps[] = {"AveragePool",
                                              "Conv",
                                              "ConvTranspose",
                                              "GlobalAveragePool",
                                              "GlobalMaxPool",
                                              "LRN",
                                              "MaxPool"};
  Regions regions(graph, options);
  Rewriter r(std::move(graph));
  std::map<ValueId, ValueId> transposed;  // one transpose for all readers of a value
  for (Node& node : r.take_nodes()) {
    if (std::find(std::begin(kOps), std::end(kOps), node.op) == std::end(kOps) ||
        node.attributes.contains("channels_last") || node.first_output > 0 ||
        regions.stays(node.outputs[0])) {
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
