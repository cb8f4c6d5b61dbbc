// A convolution much of whose products are with padding, as dilations near the size of the map
// make them, becomes a sum of convolutions of one tap each, over the outputs whose tap reads data.
// The terms are the same ones in another order, which a convolution leaves open.
#include <algorithm>

#include "graph/ops/window.h"
#include "graph/passes.h"
#include "graph/rewriter.h"

namespace pruner {
namespace {

constexpr int64_t kMostTaps = 9;
// With fewer outputs a channel, reading the weights takes the time, which no tap saves.
constexpr int64_t kLeastPixels = 64;
// Beside its products, a tap copies what it reads and adds to the outputs: the time of so many
// products for each datum and each output. With dilations of 4 to 48 and 32 to 960 channels sums
// took 0.5 to 1.1 of the time of the convolution as it stands, at most 0.1 from what these numbers
// say.
constexpr double kProductsADatum = 16;
constexpr double kProductsAnOutput = 24;
constexpr double kMostTime = 0.85;

struct Tap {
  std::vector<int64_t> place;
  std::vector<TapOutputs> outputs;  // a dimension
  int64_t pixels = 1;
};

/// Splits one convolution, if that saves enough.
class Splitter {
 public:
  Splitter(Rewriter& r, const Node& conv) : r_(r), conv_(conv), out_(r[conv.outputs[0]].shape) {
    const OpCall call{r.graph(), conv};
    const std::vector<int64_t>& weight = r[conv.inputs[1]].shape;
    kernel_.assign(weight.begin() + 2, weight.end());
    in_ = spatial_shape(call);
    window_ = *window_of(call, kernel_);
    if (element_count(kernel_) <= kMostTaps) find_taps({});
  }

  bool pays() const {
    const Value& data = r_[conv_.inputs[0]];
    const int64_t pixels = element_count(out_) / out_[1];
    const bool whole = std::ranges::any_of(taps_, [&](const Tap& t) { return is_whole(t); });
    return whole && is_float(data.dtype) && dtype_bytes(data.dtype) >= 4 &&
           r_[conv_.inputs[1]].constant && OpCall{r_.graph(), conv_}.integer("group", 1) == 1 &&
           pixels >= kLeastPixels && relative_time() <= kMostTime;
  }

  /// The value that stands for the convolution's.
  ValueId split() {
    // The first that all outputs have brings the bias.
    const auto first = std::ranges::find_if(taps_, [&](const Tap& t) { return is_whole(t); });
    ValueId sum = product(*first, true);
    for (auto tap = taps_.begin(); tap != taps_.end(); ++tap) {
      if (tap != first) sum = r_.add("Add", {sum, padded(*tap)}, {}, conv_.name);
    }
    return sum;
  }

 private:
  void find_taps(std::vector<int64_t> place) {
    const size_t d = place.size();
    if (d < kernel_.size()) {
      for (int64_t tap = 0; tap < kernel_[d]; ++tap) {
        std::vector<int64_t> next = place;
        next.push_back(tap);
        find_taps(std::move(next));
      }
      return;
    }
    Tap tap{std::move(place), {}};
    for (size_t i = 0; i < d; ++i) {
      tap.outputs.push_back(outputs_on_data(window_, i, tap.place[i], in_[i], out_[i + 2]));
      tap.pixels *= tap.outputs[i].end - tap.outputs[i].begin;
    }
    if (tap.pixels > 0) taps_.push_back(std::move(tap));
  }

  bool is_whole(const Tap& tap) const {
    return tap.pixels * out_[0] * out_[1] == element_count(out_);
  }

  // The sum's over the convolution's.
  double relative_time() const {
    double on_data = 0;
    for (const Tap& tap : taps_) on_data += static_cast<double>(tap.pixels);
    const double channels = static_cast<double>(r_[conv_.inputs[1]].shape[1]);
    const double all = static_cast<double>(element_count(kernel_) * element_count(out_)) /
                       static_cast<double>(out_[0] * out_[1]);
    return on_data / all *
           (1 + kProductsADatum / static_cast<double>(out_[1]) + kProductsAnOutput / channels);
  }

  ValueId slice(ValueId of, std::span<const int64_t> starts, std::span<const int64_t> ends) {
    bool all = true;
    for (size_t d = 0; d < starts.size(); ++d)
      all = all && starts[d] == 0 && ends[d] == r_[of].shape[d + 2];
    return all ? of : r_.add_slice(of, 2, starts, ends, conv_.name);
  }

  // The tap's products, of the outputs that have any.
  ValueId product(const Tap& tap, bool bias) {
    std::vector<int64_t> starts, ends, after = tap.place;
    for (size_t d = 0; d < in_.size(); ++d) {
      const auto reads = [&](int64_t output) {
        return output * window_.stride[d] + tap.place[d] * window_.dilation[d] -
               window_.pad_before[d];
      };
      starts.push_back(reads(tap.outputs[d].begin));
      ends.push_back(reads(tap.outputs[d].end - 1) + 1);
      ++after[d];
    }
    std::vector<ValueId> inputs = {slice(conv_.inputs[0], starts, ends),
                                   slice(conv_.inputs[1], tap.place, after)};
    if (bias && conv_.inputs.size() > 2) inputs.push_back(conv_.inputs[2]);
    return r_.add("Conv", inputs, {{"strides", window_.stride}}, conv_.name);
  }

  ValueId padded(const Tap& tap) {
    std::vector<int64_t> pads(2, 0);
    for (const TapOutputs& o : tap.outputs) pads.push_back(o.begin);
    pads.insert(pads.end(), 2, 0);
    for (size_t d = 0; d < in_.size(); ++d) pads.push_back(out_[d + 2] - tap.outputs[d].end);
    const ValueId products = product(tap, false);
    return r_.add("Pad", {products, r_.add_integers(conv_.name + "/pads", pads)}, {}, conv_.name);
  }

  Rewriter& r_;
  const Node& conv_;
  const std::vector<int64_t> out_;
  std::vector<int64_t> kernel_, in_;
  Window window_;
  std::vector<Tap> taps_;
};

}  // namespace

Graph split_kernels(Graph graph) {
  Rewriter r(std::move(graph));
  for (Node& node : r.take_nodes()) {
    for (ValueId& id : node.inputs) id = r.current(id);
    if (node.op == "Conv" && !node.attributes.contains("channels_last")) {
      Splitter splitter(r, node);
      if (splitter.pays()) {
        r.replace(node.outputs[0], splitter.split());
        continue;
      }
    }
    r.emit(std::move(node));
  }
  return r.finish();
}

}  // namespace pruner
