// RegNetY-400MF (Radosavovic et al. 2020) as torchvision has it.
#include "graph/networks/inverted_residual.h"
#include "graph/networks/networks.h"

namespace pruner {

using enum Nonlinearity;

// The size of what a block adds to its input: small, so that 16 of them don't blow it up.
static constexpr double kBranch = 0.35;
static constexpr int64_t kGroupWidth = 8;

static ValueId block(
    NetworkBuilder& b, const std::string& name, ValueId x, int64_t channels, int64_t stride) {
  const int64_t in = b.shape(x)[1];
  ValueId y = b.conv_norm(name + ".f.a", x, {.channels = channels, .then = kRelu});
  y = b.conv_norm(name + ".f.b",
                  y,
                  {.channels = channels,
                   .kernel = 3,
                   .stride = stride,
                   .groups = channels / kGroupWidth,
                   .then = kRelu});
  y = squeeze_and_excite(b, name + ".f.se", y, {.squeezed = in / 4});
  y = b.conv_norm(name + ".f.c", y, {.channels = channels, .gain = 2, .norm_scale = kBranch});
  if (stride != 1 || in != channels)
    x = b.conv_norm(name + ".proj", x, {.channels = channels, .stride = stride});
  return b.relu(b.node("Add", {x, y}));
}

Result<Graph> build_regnet_y_400mf(const NetworkOptions& options) {
  struct Stage {
    int64_t channels, repeat;
  };
  static constexpr Stage kStages[] = {{48, 1}, {104, 3}, {208, 6}, {440, 6}};
  NetworkBuilder b("regnet_y_400mf", options);
  ValueId x = b.conv_norm(
      "stem", b.image(options), {.channels = 32, .kernel = 3, .stride = 2, .then = kRelu});
  int index = 1;
  for (const Stage& stage : kStages) {
    const std::string name = "trunk_output.block" + std::to_string(index++) + ".";
    for (int64_t i = 0; i < stage.repeat; ++i)
      x = block(b, name + std::to_string(i), x, stage.channels, i == 0 ? 2 : 1);
  }
  return b.finish({{b.classifier("fc", x, 1000), "output"}});
}

}  // namespace pruner
