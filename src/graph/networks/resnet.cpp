// ResNet, Wide ResNet and ResNeXt as torchvision has them (v1.5: a bottleneck's stride is on its
// 3x3).
#include "graph/networks/resnet.h"

#include "graph/networks/networks.h"

namespace pruner {

using enum Nonlinearity;

// The size of what a block adds to its input: small, so that 16 of them don't blow it up.
static constexpr double kBranch = 0.35;

namespace {

struct Block {
  int64_t channels, stride, dilation;
};

}  // namespace

static ValueId add_shortcut(
    NetworkBuilder& b, const std::string& name, ValueId x, ValueId main, int64_t stride) {
  const int64_t channels = b.shape(main)[1];
  ValueId identity = x;
  if (stride != 1 || b.shape(x)[1] != channels) {
    identity = b.conv_norm(name + ".downsample", x, {.channels = channels, .stride = stride});
  }
  return b.relu(b.node("Add", {main, identity}));
}

static ValueId basic_block(NetworkBuilder& b,
                           const std::string& name,
                           ValueId x,
                           const Block& block) {
  ValueId y =
      b.conv_norm(name + ".conv1",
                  x,
                  {.channels = block.channels, .kernel = 3, .stride = block.stride, .then = kRelu});
  y = b.conv_norm(
      name + ".conv2", y, {.channels = block.channels, .kernel = 3, .norm_scale = kBranch});
  return add_shortcut(b, name, x, y, block.stride);
}

static ValueId bottleneck(NetworkBuilder& b,
                          const std::string& name,
                          ValueId x,
                          const Block& block,
                          const Resnet& resnet) {
  const int64_t inner = block.channels * resnet.width / 64 * resnet.groups;
  ValueId y = b.conv_norm(name + ".conv1", x, {.channels = inner, .then = kRelu});
  y = b.conv_norm(name + ".conv2",
                  y,
                  {.channels = inner,
                   .kernel = 3,
                   .stride = block.stride,
                   .groups = resnet.groups,
                   .dilation = block.dilation,
                   .then = kRelu});
  y = b.conv_norm(name + ".conv3", y, {.channels = 4 * block.channels, .norm_scale = kBranch});
  return add_shortcut(b, name, x, y, block.stride);
}

ValueId resnet_features(NetworkBuilder& b,
                        const std::string& prefix,
                        ValueId image,
                        const Resnet& resnet) {
  ValueId x = b.conv_norm(
      prefix + "conv1", image, {.channels = 64, .kernel = 7, .stride = 2, .then = kRelu});
  x = b.max_pool(x, 3, 2, 1);
  int64_t dilation = 1;
  for (size_t stage = 0; stage < resnet.depths.size(); ++stage) {
    const int64_t stride = stage > 0 && !resnet.dilated[stage] ? 2 : 1;
    for (int i = 0; i < resnet.depths[stage]; ++i) {
      const std::string at = prefix + "layer" + std::to_string(stage + 1) + "." + std::to_string(i);
      // A dilated stage's first block still has the dilation of the stage before.
      if (i == 1 && resnet.dilated[stage]) dilation *= 2;
      const Block block{int64_t{64} << stage, i == 0 ? stride : 1, dilation};
      x = resnet.bottleneck ? bottleneck(b, at, x, block, resnet) : basic_block(b, at, x, block);
    }
  }
  return x;
}

static Graph build(const char* name, const NetworkOptions& options, const Resnet& resnet) {
  NetworkBuilder b(name, options);
  const ValueId x = resnet_features(b, "", b.image(options), resnet);
  return b.finish({{b.classifier("fc", x, 1000), "output"}});
}

Result<Graph> build_resnet_18(const NetworkOptions& options) {
  return build("resnet_18", options, {.bottleneck = false, .depths = {2, 2, 2, 2}});
}

Result<Graph> build_resnet_50(const NetworkOptions& options) {
  return build("resnet_50", options, {});
}

Result<Graph> build_wide_resnet_50(const NetworkOptions& options) {
  return build("wide_resnet_50", options, {.width = 128});
}

// 32x4d.
Result<Graph> build_resnext_50(const NetworkOptions& options) {
  return build("resnext_50", options, {.groups = 32, .width = 4});
}

}  // namespace pruner
