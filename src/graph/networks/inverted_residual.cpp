#include "graph/networks/inverted_residual.h"

#include <algorithm>

namespace pruner {

ValueId squeeze_and_excite(NetworkBuilder& b,
                           const std::string& name,
                           ValueId x,
                           const SqueezeAndExcite& layer) {
  ValueId gate = b.node("GlobalAveragePool", {x});
  gate =
      b.conv(name + ".fc1", gate, {.channels = layer.squeezed, .bias = true, .then = layer.then});
  gate = b.conv(name + ".fc2", gate, {.channels = b.shape(x)[1], .bias = true, .then = layer.gate});
  return b.node("Mul", {x, gate});
}

ValueId inverted_residual(NetworkBuilder& b,
                          const std::string& name,
                          ValueId x,
                          const InvertedResidual& block) {
  const int64_t in = b.shape(x)[1];
  ValueId y = x;
  if (block.expanded != in) {
    y = b.conv_norm(name + ".expand",
                    y,
                    {.channels = block.expanded, .then = block.then, .epsilon = block.epsilon});
  }
  y = b.conv_norm(name + ".depthwise",
                  y,
                  {.channels = block.expanded,
                   .kernel = block.kernel,
                   .stride = block.stride,
                   .groups = block.expanded,
                   .then = block.then,
                   .epsilon = block.epsilon});
  if (block.squeezed > 0)
    y = squeeze_and_excite(b, name + ".se", y, {block.squeezed, block.squeeze, block.gate});
  const bool residual = block.stride == 1 && in == block.channels;
  y = b.conv_norm(name + ".project",
                  y,
                  {.channels = block.channels,
                   .gain = block.squeezed > 0 ? 2.0 : 1.0,  // gates take some off
                   .norm_scale = residual ? 0.35 : 1.0,
                   .epsilon = block.epsilon});
  return residual ? b.node("Add", {x, y}) : y;
}

int64_t round_channels(double channels) {
  const int64_t nearest = std::max<int64_t>(8, static_cast<int64_t>(channels + 4) / 8 * 8);
  return static_cast<double>(nearest) < 0.9 * channels ? nearest + 8 : nearest;
}

}  // namespace pruner
