// DenseNet-121 as torchvision has it: every layer reads all before it in its block.
#include "graph/networks/network_builder.h"
#include "graph/networks/networks.h"

namespace pruner {

static constexpr int64_t kGrowth = 32;

// Batch norm and relu before the convolution, whose gain is that of the relu.
static ValueId norm_conv(
    NetworkBuilder& b, const std::string& name, const char* index, ValueId x, ConvLayer layer) {
  layer.gain = 2;
  return b.conv(name + ".conv" + index, b.relu(b.norm(name + ".norm" + index, x)), layer);
}

static ValueId dense_block(NetworkBuilder& b, const std::string& name, ValueId x, int layers) {
  std::vector<ValueId> features = {x};
  for (int i = 1; i <= layers; ++i) {
    const std::string at = name + ".denselayer" + std::to_string(i);
    const ValueId all = i == 1 ? x : b.concat(features);
    const ValueId narrow = norm_conv(b, at, "1", all, {.channels = 4 * kGrowth});
    features.push_back(norm_conv(b, at, "2", narrow, {.channels = kGrowth, .kernel = 3}));
  }
  return b.concat(features);
}

Result<Graph> build_densenet_121(const NetworkOptions& options) {
  static constexpr int kLayers[] = {6, 12, 24, 16};
  NetworkBuilder b("densenet_121", options);
  ValueId x = b.conv_norm("features.conv0",
                          b.image(options),
                          {.channels = 64, .kernel = 7, .stride = 2, .then = Nonlinearity::kRelu});
  x = b.max_pool(x, 3, 2, 1);
  for (int block = 1; block <= 4; ++block) {
    const std::string index = std::to_string(block);
    x = dense_block(b, "features.denseblock" + index, x, kLayers[block - 1]);
    if (block == 4) break;
    x = norm_conv(b, "features.transition" + index, "", x, {.channels = b.shape(x)[1] / 2});
    x = b.average_pool(x, 2, 2);
  }
  x = b.relu(b.norm("features.norm5", x));
  return b.finish({{b.classifier("classifier", x, 1000), "output"}});
}

}  // namespace pruner
