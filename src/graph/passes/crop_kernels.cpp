// Taps of a convolution that read padding alone, for all outputs, go: a dilation of 36 on 14 pixels
// leaves one tap of three. What is padded with another number than 0 stays.
#include "graph/ops/window.h"
#include "graph/passes.h"
#include "graph/rewriter.h"

namespace pruner {

static void crop(Rewriter& r, Node& conv) {
  const OpCall call{r.graph(), conv};
  const std::vector<int64_t> shape = r[conv.inputs[1]].shape, in = spatial_shape(call);
  const std::vector<int64_t> kernel(shape.begin() + 2, shape.end());
  const Window window = *window_of(call, kernel);
  Window cropped = window;
  std::vector<int64_t> starts(kernel.size(), 0), ends = kernel, left;
  for (size_t d = 0; d < kernel.size(); ++d) {
    const int64_t out = r[conv.outputs[0]].shape[d + 2], dilation = window.dilation[d];
    const auto goes = [&](int64_t tap, int64_t padding) {
      const bool last = ends[d] - starts[d] == 1;
      return !last && padding >= dilation && outputs_on_data(window, d, tap, in[d], out).empty();
    };
    for (; goes(starts[d], cropped.pad_before[d]); ++starts[d]) cropped.pad_before[d] -= dilation;
    for (; goes(ends[d] - 1, cropped.pad_after[d]); --ends[d]) cropped.pad_after[d] -= dilation;
    left.push_back(ends[d] - starts[d]);
    if (left[d] == 1) cropped.dilation[d] = 1;
  }
  if (left == kernel) return;
  conv.inputs[1] = r.add_slice(conv.inputs[1], 2, starts, ends, conv.name);
  std::vector<int64_t> pads = cropped.pad_before;
  pads.insert(pads.end(), cropped.pad_after.begin(), cropped.pad_after.end());
  conv.attributes.erase("auto_pad");
  conv.attributes["pads"] = pads;
  conv.attributes["dilations"] = cropped.dilation;
  conv.attributes["kernel_shape"] = left;
}

Graph crop_kernels(Graph graph) {
  if (graph.keeps_all()) return graph;  // at other shapes those taps may read data
  Rewriter r(std::move(graph));
  for (Node& node : r.take_nodes()) {
    for (ValueId& id : node.inputs) id = r.current(id);
    const auto has = [&](const char* name) { return node.attributes.contains(name); };
    if (node.op == "Conv" && !has("channels_last") && !has("pad_value")) crop(r, node);
    r.emit(std::move(node));
  }
  return r.finish();
}

}  // namespace pruner
