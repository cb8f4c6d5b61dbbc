// GoogLeNet as torchvision has it: with batch norms, a 3x3 where the paper has a 5x5, and without
// the auxiliary classifiers, which only training uses.
#include "graph/networks/inception.h"
#include "graph/networks/networks.h"

namespace pruner {

namespace {

// Channels of the branches, and of the 1x1 convolutions that two of them begin with.
struct Inception {
  const char* name;
  int64_t one, three_in, three, five_in, five, pool;
};

}  // namespace

static ValueId inception(NetworkBuilder& b, ValueId x, const Inception& c) {
  const std::string name = std::string("inception") + c.name;
  const ValueId one = inception_conv(b, name + ".branch1", x, {.channels = c.one});
  ValueId three = inception_conv(b, name + ".branch2.0", x, {.channels = c.three_in});
  three = inception_conv(b, name + ".branch2.1", three, {.channels = c.three, .kernel = 3});
  ValueId five = inception_conv(b, name + ".branch3.0", x, {.channels = c.five_in});
  five = inception_conv(b, name + ".branch3.1", five, {.channels = c.five, .kernel = 3});
  const ValueId pool =
      inception_conv(b, name + ".branch4.1", b.max_pool(x, 3, 1, 1, true), {.channels = c.pool});
  return b.concat({one, three, five, pool});
}

Result<Graph> build_googlenet(const NetworkOptions& options) {
  static constexpr Inception k3[] = {{"3a", 64, 96, 128, 16, 32, 32},
                                     {"3b", 128, 128, 192, 32, 96, 64}};
  static constexpr Inception k4[] = {{"4a", 192, 96, 208, 16, 48, 64},
                                     {"4b", 160, 112, 224, 24, 64, 64},
                                     {"4c", 128, 128, 256, 24, 64, 64},
                                     {"4d", 112, 144, 288, 32, 64, 64},
                                     {"4e", 256, 160, 320, 32, 128, 128}};
  static constexpr Inception k5[] = {{"5a", 256, 160, 320, 32, 128, 128},
                                     {"5b", 384, 192, 384, 48, 128, 128}};
  NetworkBuilder b("googlenet", options);
  ValueId x =
      inception_conv(b, "conv1", b.image(options), {.channels = 64, .kernel = 7, .stride = 2});
  x = inception_conv(b, "conv2", b.max_pool(x, 3, 2, 0, true), {.channels = 64});
  x = inception_conv(b, "conv3", x, {.channels = 192, .kernel = 3});
  x = b.max_pool(x, 3, 2, 0, true);
  for (const Inception& c : k3) x = inception(b, x, c);
  x = b.max_pool(x, 3, 2, 0, true);
  for (const Inception& c : k4) x = inception(b, x, c);
  x = b.max_pool(x, 2, 2, 0, true);
  for (const Inception& c : k5) x = inception(b, x, c);
  return b.finish({{b.classifier("fc", x, 1000), "output"}});
}

}  // namespace pruner
