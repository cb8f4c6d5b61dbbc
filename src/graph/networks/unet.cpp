// U-Net with bilinear upsampling and 21 classes (milesial's Pytorch-UNet, of which Ronneberger et
// al. 2015 is the source): down to 1/16 and up again, each step beside the features of its size.
#include "graph/networks/network_builder.h"
#include "graph/networks/networks.h"

namespace pruner {

static ValueId double_conv(
    NetworkBuilder& b, const std::string& name, ValueId x, int64_t middle, int64_t channels) {
  const auto conv = [&](const char* index, ValueId in, int64_t out) {
    return b.conv_norm(name + ".double_conv." + index,
                       in,
                       {.channels = out, .kernel = 3, .then = Nonlinearity::kRelu});
  };
  return conv("3", conv("0", x, middle), channels);
}

Result<Graph> build_unet(const NetworkOptions& options) {
  static constexpr int64_t kDown[] = {128, 256, 512, 512}, kUp[] = {256, 128, 64, 64};
  NetworkBuilder b("unet", options);
  ValueId x = double_conv(b, "inc", b.image(options), 64, 64);
  std::vector<ValueId> skipped;
  for (int i = 0; i < 4; ++i) {
    skipped.push_back(x);
    x = double_conv(b, "down" + std::to_string(i + 1), b.max_pool(x, 2, 2), kDown[i], kDown[i]);
  }
  for (int i = 0; i < 4; ++i) {
    const ValueId skip = skipped[3 - i];
    x = b.concat({skip, b.resize(x, b.shape(skip)[2], b.shape(skip)[3], true)});
    x = double_conv(b, "up" + std::to_string(i + 1), x, b.shape(x)[1] / 2, kUp[i]);
  }
  return b.finish({{b.conv("outc", x, {.channels = 21, .bias = true}), "logits"}});
}

}  // namespace pruner
