// MobileNet-V2 as torchvision has it: inverted residuals around a depthwise convolution.
#include "graph/networks/network_builder.h"

namespace pruner {

static ValueId relu6(NetworkBuilder& b, ValueId x) {
  return b.node("Clip", {x, b.scalar(0), b.scalar(6)});
}

static ValueId inverted_residual(NetworkBuilder& b,
                                 const std::string& name,
                                 ValueId x,
                                 int64_t channels,
                                 int64_t stride,
                                 int64_t expansion) {
  const int64_t in = b.shape(x)[1], hidden = in * expansion;
  const bool residual = stride == 1 && in == channels;
  ValueId y = x;
  if (expansion != 1) {
    y = relu6(b, b.conv_norm(name + ".expand", y, {.channels = hidden, .kernel = 1}));
  }
  y = relu6(b,
            b.conv_norm(name + ".depthwise",
                        y,
                        {.channels = hidden, .kernel = 3, .stride = stride, .groups = hidden}));
  y = b.conv_norm(name + ".project",
                  y,
                  {.channels = channels, .kernel = 1, .scale = residual ? 0.5 : 1, .gain = 1});
  return residual ? b.node("Add", {x, y}) : y;
}

Graph build_mobilenet_v2(const NetworkOptions& options) {
  struct Stage {
    int64_t expansion, channels, repeat, stride;
  };
  static constexpr Stage kStages[] = {{1, 16, 1, 1},
                                      {6, 24, 2, 2},
                                      {6, 32, 3, 2},
                                      {6, 64, 4, 2},
                                      {6, 96, 3, 1},
                                      {6, 160, 3, 2},
                                      {6, 320, 1, 1}};
  NetworkBuilder b("mobilenet_v2");
  const int64_t size = options.image_size;
  ValueId x = b.input("input", {options.batch_size, 3, size, size}, DType::kFloat32);
  x = relu6(b, b.conv_norm("features.0", x, {.channels = 32, .kernel = 3, .stride = 2}));
  int index = 1;
  for (const Stage& stage : kStages) {
    for (int64_t i = 0; i < stage.repeat; ++i) {
      const std::string name = "features." + std::to_string(index++);
      x = inverted_residual(b, name, x, stage.channels, i == 0 ? stage.stride : 1, stage.expansion);
    }
  }
  x = relu6(b, b.conv_norm("features.18", x, {.channels = 1280, .kernel = 1}));
  return b.finish({{b.classifier("classifier", x, 1000), "output"}});
}

}  // namespace pruner
