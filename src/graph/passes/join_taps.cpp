// A convolution of few channels multiplies too few numbers in a row for a unit of bfloat16.
// Channels last, those of the taps along a row lie next to each other: [n, h, w, c] is read as [n,
// h, w * c, 1] and the kernel [kh, kw, c, co] as [kh, kw * c, 1, co], with c steps for each one
// along the row; an odd number of channels gets one more, of zeros.
#include "graph/ops/window.h"
#include "graph/passes.h"
#include "graph/rewriter.h"

namespace pruner {
namespace {

constexpr int64_t kFewChannels = 12;

bool has_few_channels(const OpCall& call) {
  if (!channels_last(call) || call.rank(0) != 4 || call.input(0).dtype != DType::kFloat32)
    return false;
  const std::vector<int64_t>& kernel = call.shape(1);
  return call.integer("group", 1) == 1 && call.input(1).constant && kernel[1] > 1 &&
         channels(call) <= kFewChannels;
}

void join(Rewriter& r, Node& conv) {
  const OpCall call{r.graph(), conv};
  if (!has_few_channels(call)) return;
  const std::vector<int64_t> data = call.shape(0), w = call.shape(1);
  const Window window = *window_of(call, std::vector<int64_t>{w[0], w[1]});
  if (window.dilation[1] != 1) return;
  const int64_t more = data[3] % 2, c = data[3] + more;
  const auto widened = [&](ValueId id, size_t axis) {
    if (more == 0) return id;
    std::vector<int64_t> pads(8, 0);
    pads[4 + axis] = more;
    return r.add("Pad", {id, r.add_integers(conv.name + "/pads", pads)}, {}, conv.name);
  };
  conv.inputs[0] = r.add_reshape(widened(conv.inputs[0], 3),
                                 std::vector<int64_t>{data[0], data[1], data[2] * c, 1});
  conv.inputs[1] =
      r.add_reshape(widened(conv.inputs[1], 2), std::vector<int64_t>{w[0], w[1] * c, 1, w[3]});
  conv.attributes.erase("auto_pad");
  conv.attributes["kernel_shape"] = std::vector<int64_t>{w[0], w[1] * c};
  conv.attributes["strides"] = std::vector<int64_t>{window.stride[0], window.stride[1] * c};
  conv.attributes["pads"] = std::vector<int64_t>{
      window.pad_before[0], window.pad_before[1] * c, window.pad_after[0], window.pad_after[1] * c};
}

}  // namespace

Graph join_taps(Graph graph, const PassOptions& options) {
  if (!options.narrow_type()) return graph;
  Rewriter r(std::move(graph));
  for (Node& node : r.take_nodes()) {
    for (ValueId& id : node.inputs) id = r.current(id);
    if (node.op == "Conv") join(r, node);
    r.emit(std::move(node));
  }
  return r.finish();
}

}  // namespace pruner
