// A transposed convolution of stride s multiplies zeros: only every s-th tap of its kernel meets a
// datum. Which taps do depends on the output's phase, its place modulo s. Here each phase becomes a
// convolution by its own taps. Phases in a row with equally many taps are one node, and the phases
// are dimensions of its result. Concats join the nodes, and a Reshape makes the image. Element-wise
// nodes that follow move before the Concats and the Reshape, so that they join the nodes' kernels.
// With stride 1 there is one phase: a convolution with the flipped kernel.
#include <algorithm>
#include <map>

#include "graph/ops/window.h"
#include "graph/passes.h"
#include "graph/rewriter.h"
#include "support/ceil_div.h"

namespace pruner {
namespace {

// Several nodes for one are quicker if the products take longer than calling the nodes' kernels: a
// million take two cores about 4 us, and 16 us with the zeros; four calls take about 8 us.
constexpr int64_t kFewestProducts = 1 << 20;

/// Phases in a row, along one dimension, with the same number of taps.
struct Run {
  int64_t first, phases, taps;
  bool operator==(const Run&) const = default;
};

/// An image whose dimensions are cut into runs of phases. Each part has a run of every dimension;
/// the run of the last dimension changes first.
struct Image {
  std::vector<std::vector<Run>> runs;  // one list a dimension
  std::vector<ValueId> parts;          // [n, outputs_0, phases_0, outputs_1, phases_1, ..., c]
};

class PhaseSplitter {
 public:
  explicit PhaseSplitter(Graph graph) : r_(std::move(graph)) {}

  Graph run() {
    for (Node& node : r_.take_nodes()) {
      for (ValueId& id : node.inputs) id = r_.current(id);
      if (!split(node) && !sink_elementwise(node)) r_.emit(std::move(node));
    }
    return r_.finish();
  }

 private:
  bool split(const Node& node);
  bool sink_elementwise(const Node& node);
  ValueId convolution(const Node& node, const TransposedWindow& t);
  ValueId weight_of_taps(const Node& node, size_t d, std::span<const int64_t> taps, ValueId weight);
  ValueId weight_of_runs(const Node& node, const Window& window, std::span<const Run> runs);
  ValueId part(const Node& node, const TransposedWindow& t, std::span<const Run> runs);
  ValueId joined(Image image);
  ValueId cropped(const Node& node, ValueId image, std::span<const int64_t> extents);
  std::vector<ValueId> parts_beside(ValueId id, const Image& image);

  Rewriter r_;
  std::map<ValueId, Image> images_;  // keys: the values that Concats and a Reshape made of parts
};

// Returns the runs of phases along a dimension; none if a phase has no tap.
std::vector<Run> runs_of(int64_t kernel, int64_t stride, int64_t pad) {
  std::vector<Run> runs;
  if (kernel < stride) return runs;
  for (int64_t p = 0; p < stride; ++p) {
    const int64_t first_tap = (p + pad) % stride;
    const int64_t taps = ceil_div(kernel - first_tap, stride);
    if (runs.empty() || runs.back().taps != taps) runs.push_back({p, 0, taps});
    ++runs.back().phases;
  }
  return runs;
}

// Calls `visit` with a run of each dimension, for all combinations; the last dimension changes
// first.
template <typename Visit>
void for_each_part(std::span<const std::vector<Run>> runs, const Visit& visit) {
  std::vector<size_t> at(runs.size(), 0);
  while (true) {
    std::vector<Run> part;
    for (size_t d = 0; d < runs.size(); ++d) part.push_back(runs[d][at[d]]);
    visit(part);
    size_t d = runs.size();
    while (d > 0 && ++at[d - 1] == runs[d - 1].size()) at[--d] = 0;
    if (d == 0) return;
  }
}

bool PhaseSplitter::split(const Node& node) {
  if (node.op != "ConvTranspose") return false;
  const OpCall call{r_.graph(), node};
  if (!channels_last(call) || !call.input(1).constant || !is_float(call.input(0).dtype))
    return false;
  const std::vector<int64_t>& weight = call.shape(1);
  const std::vector<int64_t> kernel(weight.begin(), weight.end() - 2);
  const TransposedWindow t = *transposed_window(call, kernel);
  const auto is_one = [](int64_t n) { return n == 1; };
  if (std::ranges::all_of(t.window.stride, is_one)) {
    for (size_t d = 0; d < kernel.size(); ++d) {
      const int64_t around = t.window.dilation[d] * (kernel[d] - 1);
      if (t.window.pad_before[d] > around || t.window.pad_after[d] > around) return false;
    }
    r_.replace(node.outputs[0], convolution(node, t));
    return true;
  }
  if (!std::ranges::all_of(t.window.dilation, is_one)) return false;
  Image image;
  bool one_node = true;
  for (size_t d = 0; d < kernel.size(); ++d) {
    const int64_t stride = t.window.stride[d];
    image.runs.push_back(runs_of(kernel[d], stride, t.window.pad_before[d]));
    // An output_shape may ask for more than the attribute output_padding may.
    if (t.output_padding[d] >= stride || image.runs.back().empty()) return false;
    one_node = one_node && image.runs.back().size() == 1;
  }
  const int64_t products = element_count(call.shape(0)) / channels(call) * element_count(weight);
  if (!one_node && products < kFewestProducts) return false;
  for_each_part(image.runs,
                [&](std::span<const Run> runs) { image.parts.push_back(part(node, t, runs)); });
  r_.replace(node.outputs[0], cropped(node, joined(std::move(image)), t.output));
  return true;
}

// A convolution with the flipped kernel, for stride 1.
ValueId PhaseSplitter::convolution(const Node& node, const TransposedWindow& t) {
  const std::vector<int64_t> weight_shape = r_[node.inputs[1]].shape;
  const OpCall call{r_.graph(), node};
  std::vector<int64_t> before, after;
  std::vector<ValueId> inputs = node.inputs;
  for (size_t d = 0; d < t.output.size(); ++d) {
    const int64_t around = t.window.dilation[d] * (weight_shape[d] - 1);
    before.push_back(around - t.window.pad_before[d]);
    after.push_back(around - t.window.pad_after[d] + t.output_padding[d]);
    std::vector<int64_t> flipped;
    for (int64_t tap = weight_shape[d]; tap-- > 0;) flipped.push_back(tap);
    inputs[1] = weight_of_taps(node, d, flipped, inputs[1]);
  }
  const int64_t groups = call.integer("group", 1);
  // A depthwise Conv has its weight as [kernel..., c, multiplier].
  if (groups > 1 && groups == channels(call)) {
    std::vector<int64_t> shape = weight_shape;
    shape.end()[-2] = groups;
    shape.end()[-1] /= groups;
    inputs[1] = r_.add_reshape(inputs[1], shape);
  }
  before.insert(before.end(), after.begin(), after.end());
  return r_.add("Conv",
                inputs,
                {{"channels_last", int64_t{1}},
                 {"dilations", t.window.dilation},
                 {"group", groups},
                 {"pads", before}},
                node.name);
}

// The weight with these taps of kernel dimension d, in this order.
ValueId PhaseSplitter::weight_of_taps(const Node& node,
                                      size_t d,
                                      std::span<const int64_t> taps,
                                      ValueId weight) {
  return r_.add("Gather",
                {weight, r_.add_integers(node.name + "/taps", taps)},
                {{"axis", static_cast<int64_t>(d)}},
                node.name);
}

// [kernel..., ci / groups, co] as [phases..., taps..., ci / groups, co], of a run a dimension.
ValueId PhaseSplitter::weight_of_runs(const Node& node,
                                      const Window& window,
                                      std::span<const Run> runs) {
  ValueId weight = node.inputs[1];
  const std::vector<int64_t> given = r_[weight].shape;
  const size_t rank = runs.size();
  std::vector<int64_t> by_dim, order;
  for (size_t d = 0; d < rank; ++d) {
    const int64_t stride = window.stride[d];
    std::vector<int64_t> taps;
    for (int64_t p = runs[d].first; p < runs[d].first + runs[d].phases; ++p)
      for (int64_t a = runs[d].taps; a-- > 0;)
        taps.push_back((p + window.pad_before[d]) % stride + a * stride);
    weight = weight_of_taps(node, d, taps, weight);
    by_dim.insert(by_dim.end(), {runs[d].phases, runs[d].taps});
  }
  by_dim.insert(by_dim.end(), given.end() - 2, given.end());
  for (size_t d = 0; d < rank; ++d) order.push_back(static_cast<int64_t>(2 * d));
  for (size_t d = 0; d < rank; ++d) order.push_back(static_cast<int64_t>(2 * d + 1));
  for (size_t d = 2 * rank; d < by_dim.size(); ++d) order.push_back(static_cast<int64_t>(d));
  return r_.add_transpose(r_.add_reshape(weight, by_dim), order);
}

ValueId PhaseSplitter::part(const Node& node,
                            const TransposedWindow& t,
                            std::span<const Run> runs) {
  const std::vector<int64_t> weight = r_[node.inputs[1]].shape;
  std::vector<int64_t> pads = t.window.pad_before, first;
  pads.insert(pads.end(), t.window.pad_after.begin(), t.window.pad_after.end());
  for (const Run& run : runs) first.push_back(run.first);
  std::vector<ValueId> inputs = node.inputs;
  inputs[1] = weight_of_runs(node, t.window, runs);
  if (inputs.size() > 2 && inputs[2].valid()) {
    std::vector<int64_t> bias(2 * runs.size() + 2, 1);
    bias.back() = weight.back();
    inputs[2] = r_.add_reshape(inputs[2], bias);
  }
  return r_.add("ConvTransposePhases",
                inputs,
                {{"channels_last", int64_t{1}},
                 {"first_phases", first},
                 {"group", OpCall{r_.graph(), node}.integer("group", 1)},
                 {"kernel_shape", std::vector<int64_t>(weight.begin(), weight.end() - 2)},
                 {"output_padding", t.output_padding},
                 {"pads", pads},
                 {"strides", t.window.stride}},
                node.name);
}

// Joins the parts along the phases, and makes [n, outputs_0 * s_0, outputs_1 * s_1, ..., c] of
// [n, outputs_0, s_0, outputs_1, s_1, ..., c].
ValueId PhaseSplitter::joined(Image image) {
  std::vector<ValueId> parts = image.parts;
  for (size_t d = image.runs.size(); d-- > 0;) {
    const size_t count = image.runs[d].size();
    if (count == 1) continue;
    std::vector<ValueId> longer;
    for (size_t i = 0; i < parts.size(); i += count)
      longer.push_back(r_.add(
          "Concat",
          {parts.begin() + static_cast<long>(i), parts.begin() + static_cast<long>(i + count)},
          {{"axis", static_cast<int64_t>(2 * d + 2)}},
          r_[parts[i]].name));
    parts = std::move(longer);
  }
  const std::vector<int64_t> by_phase = r_[parts[0]].shape;
  std::vector<int64_t> shape = {by_phase.front()};
  for (size_t i = 1; i + 1 < by_phase.size(); i += 2)
    shape.push_back(by_phase[i] * by_phase[i + 1]);
  shape.push_back(by_phase.back());
  const ValueId made = r_.add_reshape(parts[0], shape);
  images_[made] = std::move(image);
  return made;
}

// Cuts off the outputs that whole phases have too much at the end.
ValueId PhaseSplitter::cropped(const Node& node, ValueId image, std::span<const int64_t> extents) {
  if (r_[image].shape == r_[node.outputs[0]].shape) return image;
  const std::vector<int64_t> zeros(extents.size(), 0);
  return r_.add_slice(image, 1, zeros, extents, node.name);
}

// Returns for each part of the image the operand that it has where the image has `id`; nothing if
// `id` cannot be cut into such operands.
std::vector<ValueId> PhaseSplitter::parts_beside(ValueId id, const Image& image) {
  const std::vector<int64_t>& first = r_[image.parts[0]].shape;
  if (const auto it = images_.find(id); it != images_.end()) {
    const bool alike = it->second.runs == image.runs && r_[it->second.parts[0]].shape == first;
    return alike ? it->second.parts : std::vector<ValueId>();
  }
  const std::vector<int64_t>& own = r_[id].shape;
  const int64_t count = element_count(own);
  if (count == 1 || (!own.empty() && count == own.back()))  // the same along all dims but channels
    return std::vector<ValueId>(image.parts.size(), id);
  if (image.parts.size() > 1 || count != element_count(first)) return {};
  return {r_.add_reshape(id, first)};
}

bool PhaseSplitter::sink_elementwise(const Node& node) {
  if (find_graph_op(node.op)->fusion > Fusion::kBroadcast || node.outputs.size() != 1) return false;
  const auto found =
      std::ranges::find_if(node.inputs, [&](ValueId id) { return images_.contains(id); });
  if (found == node.inputs.end() || r_[*found].shape != r_[node.outputs[0]].shape) return false;
  Image image = images_.at(*found);
  std::vector<std::vector<ValueId>> operands(image.parts.size());  // operands of each part
  for (const ValueId id : node.inputs) {
    const std::vector<ValueId> beside =
        id.valid() ? parts_beside(id, image) : std::vector<ValueId>(image.parts.size());
    if (beside.empty()) return false;
    for (size_t i = 0; i < beside.size(); ++i) operands[i].push_back(beside[i]);
  }
  for (size_t i = 0; i < image.parts.size(); ++i)
    image.parts[i] = r_.add(node.op, operands[i], node.attributes, node.name);
  r_.replace(node.outputs[0], joined(std::move(image)));
  return true;
}

}  // namespace

Graph split_phases(Graph graph) { return PhaseSplitter(std::move(graph)).run(); }

}  // namespace pruner
