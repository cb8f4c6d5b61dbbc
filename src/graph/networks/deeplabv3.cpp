// DeepLabV3 on ResNet-50 as torchvision has it, with 21 classes and without the auxiliary head: the
// last two stages dilate, then convolutions of several dilations see the same features.
#include "graph/networks/networks.h"
#include "graph/networks/resnet.h"

namespace pruner {

using enum Nonlinearity;

static constexpr int64_t kChannels = 256, kClasses = 21;

// Atrous spatial pyramid pooling.
static ValueId pyramid(NetworkBuilder& b, ValueId x) {
  const std::string name = "classifier.0.";
  const int64_t height = b.shape(x)[2], width = b.shape(x)[3];
  std::vector<ValueId> parts = {
      b.conv_norm(name + "convs.0", x, {.channels = kChannels, .then = kRelu})};
  for (const int64_t rate : {12, 24, 36}) {
    parts.push_back(
        b.conv_norm(name + "convs." + std::to_string(parts.size()),
                    x,
                    {.channels = kChannels, .kernel = 3, .dilation = rate, .then = kRelu}));
  }
  const ValueId mean = b.conv_norm(
      name + "convs.4", b.node("GlobalAveragePool", {x}), {.channels = kChannels, .then = kRelu});
  parts.push_back(b.resize(mean, height, width, false));
  return b.conv_norm(name + "project", b.concat(parts), {.channels = kChannels, .then = kRelu});
}

Result<Graph> build_deeplabv3_resnet50(const NetworkOptions& options) {
  NetworkBuilder b("deeplabv3_resnet50", options);
  const ValueId image = b.image(options);
  ValueId x = resnet_features(b, "backbone.", image, {.dilated = {false, false, true, true}});
  x = pyramid(b, x);
  x = b.conv_norm("classifier.1", x, {.channels = kChannels, .kernel = 3, .then = kRelu});
  x = b.conv("classifier.4", x, {.channels = kClasses, .bias = true});
  return b.finish({{b.resize(x, options.image_size, options.image_size, false), "out"}});
}

}  // namespace pruner
