// EfficientNet-B0 and -B4 as torchvision has them.
#include <cmath>

#include "graph/networks/inverted_residual.h"
#include "graph/networks/networks.h"

namespace pruner {

using enum Nonlinearity;

// The stages of B0, each with its channels times `width` and its blocks times `depth`.
static Graph build(const char* name, const NetworkOptions& options, double width, double depth) {
  struct Stage {
    int64_t expansion, kernel, stride, channels, repeat;
  };
  static constexpr Stage kStages[] = {{1, 3, 1, 16, 1},
                                      {6, 3, 2, 24, 2},
                                      {6, 5, 2, 40, 2},
                                      {6, 3, 2, 80, 3},
                                      {6, 5, 1, 112, 3},
                                      {6, 5, 2, 192, 4},
                                      {6, 3, 1, 320, 1}};
  NetworkBuilder b(name, options);
  ValueId x = b.conv_norm(
      "features.0",
      b.image(options),
      {.channels = round_channels(32 * width), .kernel = 3, .stride = 2, .then = kSilu});
  int index = 1;
  for (const Stage& stage : kStages) {
    const double blocks = std::ceil(static_cast<double>(stage.repeat) * depth);
    for (int i = 0; i < static_cast<int>(blocks); ++i) {
      const int64_t in = b.shape(x)[1];
      x = inverted_residual(
          b,
          "features." + std::to_string(index) + "." + std::to_string(i),
          x,
          {.expanded = in * stage.expansion,
           .channels = round_channels(static_cast<double>(stage.channels) * width),
           .kernel = stage.kernel,
           .stride = i == 0 ? stage.stride : 1,
           .squeezed = in / 4,
           .then = kSilu,
           .squeeze = kSilu});
    }
    ++index;
  }
  x = b.conv_norm("features.8", x, {.channels = 4 * b.shape(x)[1], .then = kSilu});
  return b.finish({{b.classifier("classifier", x, 1000), "output"}});
}

Result<Graph> build_efficientnet_b0(const NetworkOptions& options) {
  return build("efficientnet_b0", options, 1, 1);
}

Result<Graph> build_efficientnet_b4(const NetworkOptions& options) {
  return build("efficientnet_b4", options, 1.4, 1.8);
}

}  // namespace pruner
