// ConvNeXt-Tiny (Liu et al. 2022) as torchvision has it.
#include "graph/networks/networks.h"
#include "graph/networks/transformer.h"

namespace pruner {

static constexpr double kEpsilon = 1e-6;

static ValueId transpose(NetworkBuilder& b, ValueId x, std::vector<int64_t> order) {
  return b.node("Transpose", {x}, {{"perm", std::move(order)}});
}

// Over the channels of each pixel of [batch, channels, height, width].
static ValueId norm_channels(NetworkBuilder& b, const std::string& name, ValueId x) {
  return transpose(b, layer_norm(b, name, transpose(b, x, {0, 2, 3, 1}), kEpsilon), {0, 3, 1, 2});
}

// A convolution whose windows tile the image.
static ValueId patches(
    NetworkBuilder& b, const std::string& name, ValueId x, int64_t channels, int64_t size) {
  return b.conv(
      name, x, {.channels = channels, .kernel = size, .stride = size, .padding = 0, .bias = true});
}

static ValueId block(NetworkBuilder& b, const std::string& name, ValueId x) {
  const int64_t channels = b.shape(x)[1];
  ValueId y = b.conv(
      name + ".block.0", x, {.channels = channels, .kernel = 7, .groups = channels, .bias = true});
  y = layer_norm(b, name + ".block.2", transpose(b, y, {0, 2, 3, 1}), kEpsilon);
  y = gelu(b, linear(b, name + ".block.3", y, 4 * channels));
  y = transpose(b, linear(b, name + ".block.5", y, channels, 2), {0, 3, 1, 2});
  const ValueId scale = b.random(name + ".layer_scale", {channels, 1, 1}, 0.35, 0.1);
  return b.node("Add", {x, b.node("Mul", {scale, y})});
}

Result<Graph> build_convnext_tiny(const NetworkOptions& options) {
  static constexpr int64_t kChannels[] = {96, 192, 384, 768}, kDepths[] = {3, 3, 9, 3};
  NetworkBuilder b("convnext_tiny", options);
  ValueId x = patches(b, "features.0.0", b.image(options), kChannels[0], 4);
  x = norm_channels(b, "features.0.1", x);
  for (int stage = 0; stage < 4; ++stage) {
    const std::string at = "features." + std::to_string(2 * stage);
    if (stage > 0) x = patches(b, at + ".1", norm_channels(b, at + ".0", x), kChannels[stage], 2);
    const std::string blocks = "features." + std::to_string(2 * stage + 1) + ".";
    for (int64_t i = 0; i < kDepths[stage]; ++i) x = block(b, blocks + std::to_string(i), x);
  }
  x = norm_channels(b, "classifier.0", b.node("GlobalAveragePool", {x}));
  return b.finish({{b.dense("classifier.2", b.flatten(x), 1000), "output"}});
}

}  // namespace pruner
