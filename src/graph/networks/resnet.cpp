// ResNet-18 and -50 as torchvision has them (v1.5: a bottleneck's stride is on its 3x3).
#include "graph/networks/network_builder.h"

namespace pruner {

// The size of what a block adds to its input: small, so that 16 of them don't blow it up.
static constexpr double kBranch = 0.25;

static ValueId add_shortcut(
    NetworkBuilder& b, const std::string& name, ValueId x, ValueId main, int64_t stride) {
  const int64_t channels = b.shape(main)[1];
  ValueId identity = x;
  if (stride != 1 || b.shape(x)[1] != channels) {
    identity = b.conv_norm(
        name + ".downsample", x, {.channels = channels, .kernel = 1, .stride = stride, .gain = 1});
  }
  return b.node("Relu", {b.node("Add", {main, identity})});
}

static ValueId basic_block(
    NetworkBuilder& b, const std::string& name, ValueId x, int64_t channels, int64_t stride) {
  ValueId y =
      b.conv_norm(name + ".conv1", x, {.channels = channels, .kernel = 3, .stride = stride});
  y = b.conv_norm(
      name + ".conv2", b.node("Relu", {y}), {.channels = channels, .kernel = 3, .scale = kBranch});
  return add_shortcut(b, name, x, y, stride);
}

static ValueId bottleneck(
    NetworkBuilder& b, const std::string& name, ValueId x, int64_t channels, int64_t stride) {
  ValueId y = b.conv_norm(name + ".conv1", x, {.channels = channels, .kernel = 1});
  y = b.conv_norm(
      name + ".conv2", b.node("Relu", {y}), {.channels = channels, .kernel = 3, .stride = stride});
  y = b.conv_norm(name + ".conv3",
                  b.node("Relu", {y}),
                  {.channels = 4 * channels, .kernel = 1, .scale = kBranch});
  return add_shortcut(b, name, x, y, stride);
}

using Block = ValueId(NetworkBuilder&, const std::string&, ValueId, int64_t, int64_t);

static Graph build_resnet(const char* name,
                          const NetworkOptions& options,
                          Block* block,
                          const std::vector<int>& depths) {
  NetworkBuilder b(name);
  const int64_t size = options.image_size;
  ValueId x = b.input("input", {options.batch_size, 3, size, size}, DType::kFloat32);
  x = b.conv_norm("conv1", x, {.channels = 64, .kernel = 7, .stride = 2});
  x = b.node("MaxPool",
             {b.node("Relu", {x})},
             {{"kernel_shape", std::vector<int64_t>{3, 3}},
              {"pads", std::vector<int64_t>{1, 1, 1, 1}},
              {"strides", std::vector<int64_t>{2, 2}}});
  for (size_t stage = 0; stage < depths.size(); ++stage) {
    for (int i = 0; i < depths[stage]; ++i) {
      const std::string at = "layer" + std::to_string(stage + 1) + "." + std::to_string(i);
      x = block(b, at, x, int64_t{64} << stage, stage > 0 && i == 0 ? 2 : 1);
    }
  }
  return b.finish({{b.classifier("fc", x, 1000), "output"}});
}

Graph build_resnet_18(const NetworkOptions& options) {
  return build_resnet("resnet_18", options, basic_block, {2, 2, 2, 2});
}

Graph build_resnet_50(const NetworkOptions& options) {
  return build_resnet("resnet_50", options, bottleneck, {3, 4, 6, 3});
}

}  // namespace pruner
