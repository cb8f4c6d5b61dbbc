// ResNet of videos as torchvision's r3d_18 has it (Tran et al. 2018): ResNet-18's blocks with 3x3x3
// convolutions, and no pooling after the first.
#include <array>

#include "graph/networks/network_builder.h"
#include "graph/networks/networks.h"

namespace pruner {

namespace {

using Dims = std::array<int64_t, 3>;  // depth, height, width

struct Conv3d {
  int64_t channels;
  Dims kernel = {3, 3, 3}, stride = {1, 1, 1};
  double gain = 1, norm_scale = 1;
};

}  // namespace

static constexpr int64_t kFrames = 16, kClasses = 400;
// The scale of the summand that a block adds to its input.
static constexpr double kBranch = 0.35;

// Adds a Conv and a batch norm; half the kernel's reach is padded on each side.
static ValueId conv_norm(NetworkBuilder& b,
                         const std::string& name,
                         ValueId x,
                         const Conv3d& layer) {
  const Dims& k = layer.kernel;
  const int64_t in = b.shape(x)[1];
  const ValueId weight = b.weight(name + ".weight",
                                  {layer.channels, in, k[0], k[1], k[2]},
                                  in * k[0] * k[1] * k[2],
                                  layer.gain);
  const std::vector<int64_t> pads = {k[0] / 2, k[1] / 2, k[2] / 2, k[0] / 2, k[1] / 2, k[2] / 2};
  const ValueId y =
      b.node("Conv",
             {x, weight},
             {{"kernel_shape", std::vector<int64_t>(k.begin(), k.end())},
              {"pads", pads},
              {"strides", std::vector<int64_t>(layer.stride.begin(), layer.stride.end())}});
  return b.norm(name + ".norm", y, layer.norm_scale);
}

static ValueId block(
    NetworkBuilder& b, const std::string& name, ValueId x, int64_t channels, int64_t stride) {
  const Dims strides = {stride, stride, stride};
  ValueId y = b.relu(
      conv_norm(b, name + ".conv1", x, {.channels = channels, .stride = strides, .gain = 2}));
  y = conv_norm(b, name + ".conv2", y, {.channels = channels, .norm_scale = kBranch});
  if (stride != 1)
    x = conv_norm(
        b, name + ".downsample", x, {.channels = channels, .kernel = {1, 1, 1}, .stride = strides});
  return b.relu(b.node("Add", {y, x}));
}

static Graph build(const char* name,
                   const NetworkOptions& options,
                   const std::vector<int64_t>& shape) {
  NetworkBuilder b(name, options);
  const Conv3d stem = {.channels = 64, .kernel = {3, 7, 7}, .stride = {1, 2, 2}, .gain = 2};
  ValueId x = b.relu(conv_norm(b, "stem", b.input("input", shape, DType::kFloat32), stem));
  for (int64_t layer = 0; layer < 4; ++layer) {
    const std::string at = "layer" + std::to_string(layer + 1);
    for (int64_t i = 0; i < 2; ++i)
      x = block(b, at + "." + std::to_string(i), x, 64 << layer, layer > 0 && i == 0 ? 2 : 1);
  }
  return b.finish({{b.classifier("fc", x, kClasses), "output"}});
}

Result<Graph> build_r3d_18(const NetworkOptions& options) {
  const int64_t size = options.image_size;
  return build("r3d_18", options, {options.batch_size, 3, kFrames, size, size});
}

// TenSet, and Pruner after TenSet, trace the network with the frames last, where torchvision has
// the width.
Result<Graph> build_resnet3d_18(const NetworkOptions& options) {
  const int64_t size = options.image_size;
  return build("resnet3d_18", options, {options.batch_size, 3, size, size, kFrames});
}

}  // namespace pruner
