// MobileNet-V2, MobileNet-V3 (large) and MnasNet as torchvision has them.
#include "graph/networks/inverted_residual.h"
#include "graph/networks/networks.h"

namespace pruner {

using enum Nonlinearity;

namespace {

// Blocks that differ in their stride alone: only the first has it.
struct Blocks {
  int64_t expansion, kernel, channels, repeat, stride;
};

}  // namespace

static Graph build(const char* name,
                   const NetworkOptions& options,
                   std::span<const Blocks> stages,
                   Nonlinearity then) {
  NetworkBuilder b(name, options);
  ValueId x = b.conv_norm(
      "features.0", b.image(options), {.channels = 32, .kernel = 3, .stride = 2, .then = then});
  int index = 1;
  for (const Blocks& stage : stages) {
    for (int64_t i = 0; i < stage.repeat; ++i) {
      x = inverted_residual(b,
                            "features." + std::to_string(index++),
                            x,
                            {.expanded = b.shape(x)[1] * stage.expansion,
                             .channels = stage.channels,
                             .kernel = stage.kernel,
                             .stride = i == 0 ? stage.stride : 1,
                             .then = then});
    }
  }
  const std::string last = "features." + std::to_string(index);
  x = b.conv_norm(last, x, {.channels = 1280, .then = then});
  return b.finish({{b.classifier("classifier", x, 1000), "output"}});
}

Result<Graph> build_mobilenet_v2(const NetworkOptions& options) {
  static constexpr Blocks kStages[] = {{1, 3, 16, 1, 1},
                                       {6, 3, 24, 2, 2},
                                       {6, 3, 32, 3, 2},
                                       {6, 3, 64, 4, 2},
                                       {6, 3, 96, 3, 1},
                                       {6, 3, 160, 3, 2},
                                       {6, 3, 320, 1, 1}};
  return build("mobilenet_v2", options, kStages, kRelu6);
}

Result<Graph> build_mnasnet1_0(const NetworkOptions& options) {
  static constexpr Blocks kStages[] = {{1, 3, 16, 1, 1},
                                       {3, 3, 24, 3, 2},
                                       {3, 5, 40, 3, 2},
                                       {6, 5, 80, 3, 2},
                                       {6, 3, 96, 2, 1},
                                       {6, 5, 192, 4, 2},
                                       {6, 3, 320, 1, 1}};
  return build("mnasnet1_0", options, kStages, kRelu);
}

// Large; Howard et al. 2019, table 1.
Result<Graph> build_mobilenet_v3(const NetworkOptions& options) {
  struct Row {
    int64_t kernel, expanded, channels;
    bool squeezes;
    Nonlinearity then;
    int64_t stride;
  };
  static constexpr Row kRows[] = {{3, 16, 16, false, kRelu, 1},
                                  {3, 64, 24, false, kRelu, 2},
                                  {3, 72, 24, false, kRelu, 1},
                                  {5, 72, 40, true, kRelu, 2},
                                  {5, 120, 40, true, kRelu, 1},
                                  {5, 120, 40, true, kRelu, 1},
                                  {3, 240, 80, false, kHardSwish, 2},
                                  {3, 200, 80, false, kHardSwish, 1},
                                  {3, 184, 80, false, kHardSwish, 1},
                                  {3, 184, 80, false, kHardSwish, 1},
                                  {3, 480, 112, true, kHardSwish, 1},
                                  {3, 672, 112, true, kHardSwish, 1},
                                  {5, 672, 160, true, kHardSwish, 2},
                                  {5, 960, 160, true, kHardSwish, 1},
                                  {5, 960, 160, true, kHardSwish, 1}};
  static constexpr double kEpsilon = 1e-3;
  NetworkBuilder b("mobilenet_v3", options);
  ValueId x = b.conv_norm(
      "features.0",
      b.image(options),
      {.channels = 16, .kernel = 3, .stride = 2, .then = kHardSwish, .epsilon = kEpsilon});
  int index = 1;
  for (const Row& row : kRows) {
    const int64_t squeezed =
        row.squeezes ? round_channels(static_cast<double>(row.expanded) / 4) : 0;
    x = inverted_residual(b,
                          "features." + std::to_string(index++),
                          x,
                          {.expanded = row.expanded,
                           .channels = row.channels,
                           .kernel = row.kernel,
                           .stride = row.stride,
                           .squeezed = squeezed,
                           .then = row.then,
                           .gate = kHardSigmoid,
                           .epsilon = kEpsilon});
  }
  x = b.conv_norm("features.16", x, {.channels = 960, .then = kHardSwish, .epsilon = kEpsilon});
  x = b.flatten(b.node("GlobalAveragePool", {x}));
  x = b.activation(b.dense("classifier.0", x, 1280, 2), kHardSwish);
  return b.finish({{b.dense("classifier.3", x, 1000), "output"}});
}

}  // namespace pruner
