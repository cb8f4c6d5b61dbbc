// AlexNet and VGG-16 as torchvision has them: convolutions, then three dense layers on features of
// a fixed size.
#include <array>

#include "graph/networks/network_builder.h"
#include "graph/networks/networks.h"

namespace pruner {

using enum Nonlinearity;

static ValueId conv_relu(NetworkBuilder& b, int index, ValueId x, ConvLayer layer) {
  layer.bias = true;
  layer.then = kRelu;
  return b.conv("features." + std::to_string(index), x, layer);
}

// Features pooled to `size` x `size` (torch's AdaptiveAvgPool2d), where windows can be equal.
static Result<ValueId> pooled_to(NetworkBuilder& b, ValueId x, int64_t size, int64_t image_size) {
  std::vector<int64_t> shape = b.shape(x);
  const int64_t found = shape[2];
  if (found == size) return x;
  if (found % size == 0) return b.average_pool(x, found / size, found / size);
  if (found == 1) {
    shape[2] = shape[3] = size;
    return b.node("Expand", {x, b.integers("avgpool.shape", shape)});
  }
  return Error("image size ",
               image_size,
               " gives features of ",
               found,
               "x",
               found,
               ", which no equal windows pool to ",
               size,
               "x",
               size,
               "; 224 does");
}

static Result<Graph> classify(NetworkBuilder& b,
                              ValueId x,
                              int64_t size,
                              std::array<int, 3> layers,
                              const NetworkOptions& options) {
  TRY_ASSIGN(x, pooled_to(b, x, size, options.image_size));
  x = b.flatten(x);
  const auto name = [&](size_t i) { return "classifier." + std::to_string(layers[i]); };
  x = b.relu(b.dense(name(0), x, 4096, 2));
  x = b.relu(b.dense(name(1), x, 4096, 2));
  return b.finish({{b.dense(name(2), x, 1000), "output"}});
}

Result<Graph> build_alexnet(const NetworkOptions& options) {
  NetworkBuilder b("alexnet", options);
  ValueId x =
      conv_relu(b, 0, b.image(options), {.channels = 64, .kernel = 11, .stride = 4, .padding = 2});
  x = conv_relu(b, 3, b.max_pool(x, 3, 2), {.channels = 192, .kernel = 5});
  x = conv_relu(b, 6, b.max_pool(x, 3, 2), {.channels = 384, .kernel = 3});
  x = conv_relu(b, 8, x, {.channels = 256, .kernel = 3});
  x = conv_relu(b, 10, x, {.channels = 256, .kernel = 3});
  return classify(b, b.max_pool(x, 3, 2), 6, {1, 4, 6}, options);
}

// Configuration D, without batch norm.
Result<Graph> build_vgg_16(const NetworkOptions& options) {
  struct Stage {
    int64_t channels;
    int repeat;
  };
  static constexpr Stage kStages[] = {{64, 2}, {128, 2}, {256, 3}, {512, 3}, {512, 3}};
  NetworkBuilder b("vgg_16", options);
  ValueId x = b.image(options);
  int index = 0;
  for (const Stage& stage : kStages) {
    for (int i = 0; i < stage.repeat; ++i, index += 2) {
      x = conv_relu(b, index, x, {.channels = stage.channels, .kernel = 3});
    }
    x = b.max_pool(x, 2, 2);
    ++index;
  }
  return classify(b, x, 7, {0, 3, 6}, options);
}

}  // namespace pruner
