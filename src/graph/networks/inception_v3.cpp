// Inception-v3 as torchvision has it, without the auxiliary classifier, which only training uses.
#include "graph/networks/inception.h"
#include "graph/networks/networks.h"

namespace pruner {

namespace {

// A module's input, and its branches: runs of convolutions, each with batch norm and relu.
class Mixed {
 public:
  Mixed(NetworkBuilder& b, std::string name, ValueId x) : b_(b), name_(std::move(name)), x_(x) {}

  ValueId one(const std::string& name, ValueId x, const ConvLayer& layer) {
    return inception_conv(b_, name_ + "." + name, x, layer);
  }
  /// Convolutions in a row, called name_1, name_2, ...
  ValueId run(const std::string& name, const std::vector<ConvLayer>& layers) {
    ValueId y = x_;
    int i = 0;
    for (const ConvLayer& layer : layers) {
      y = one(layers.size() == 1 ? name : name + "_" + std::to_string(++i), y, layer);
    }
    return y;
  }
  ValueId pooled(int64_t channels) {
    return one("branch_pool", b_.average_pool(x_, 3, 1, 1), {.channels = channels});
  }
  /// A 1x3 and a 3x1 convolution beside each other.
  ValueId split(const std::string& name, ValueId x) {
    const ValueId wide = one(name + "a", x, {.channels = 384, .kernel = 1, .kernel_w = 3});
    const ValueId high = one(name + "b", x, {.channels = 384, .kernel = 3, .kernel_w = 1});
    return b_.concat({wide, high});
  }

 private:
  NetworkBuilder& b_;
  std::string name_;
  ValueId x_;
};

// Convolutions of the given shapes; `reduced` has stride 2 and no padding.
ConvLayer square(int64_t channels, int64_t kernel) {
  return {.channels = channels, .kernel = kernel};
}
ConvLayer wide(int64_t channels) { return {.channels = channels, .kernel = 1, .kernel_w = 7}; }
ConvLayer high(int64_t channels) { return {.channels = channels, .kernel = 7, .kernel_w = 1}; }
ConvLayer reduced(int64_t channels) {
  return {.channels = channels, .kernel = 3, .stride = 2, .padding = 0};
}

ValueId inception_a(NetworkBuilder& b, const char* name, ValueId x, int64_t pool_features) {
  Mixed m(b, name, x);
  const ValueId one = m.run("branch1x1", {square(64, 1)});
  const ValueId five = m.run("branch5x5", {square(48, 1), square(64, 5)});
  const ValueId three = m.run("branch3x3dbl", {square(64, 1), square(96, 3), square(96, 3)});
  return b.concat({one, five, three, m.pooled(pool_features)});
}

ValueId inception_b(NetworkBuilder& b, const char* name, ValueId x) {
  Mixed m(b, name, x);
  const ValueId once = m.run("branch3x3", {reduced(384)});
  const ValueId twice = m.run("branch3x3dbl", {square(64, 1), square(96, 3), reduced(96)});
  return b.concat({once, twice, b.max_pool(x, 3, 2)});
}

ValueId inception_c(NetworkBuilder& b, const char* name, ValueId x, int64_t c7) {
  Mixed m(b, name, x);
  const ValueId one = m.run("branch1x1", {square(192, 1)});
  const ValueId once = m.run("branch7x7", {square(c7, 1), wide(c7), high(192)});
  const ValueId twice =
      m.run("branch7x7dbl", {square(c7, 1), high(c7), wide(c7), high(c7), wide(192)});
  return b.concat({one, once, twice, m.pooled(192)});
}

ValueId inception_d(NetworkBuilder& b, const char* name, ValueId x) {
  Mixed m(b, name, x);
  const ValueId three = m.run("branch3x3", {square(192, 1), reduced(320)});
  const ValueId seven = m.run("branch7x7x3", {square(192, 1), wide(192), high(192), reduced(192)});
  return b.concat({three, seven, b.max_pool(x, 3, 2)});
}

ValueId inception_e(NetworkBuilder& b, const char* name, ValueId x) {
  Mixed m(b, name, x);
  const ValueId one = m.run("branch1x1", {square(320, 1)});
  const ValueId once = m.split("branch3x3_2", m.one("branch3x3_1", x, square(384, 1)));
  const ValueId twice =
      m.split("branch3x3dbl_3", m.run("branch3x3dbl", {square(448, 1), square(384, 3)}));
  return b.concat({one, once, twice, m.pooled(192)});
}

}  // namespace

Result<Graph> build_inception_v3(const NetworkOptions& options) {
  NetworkBuilder b("inception_v3", options);
  ValueId x = inception_conv(b, "Conv2d_1a_3x3", b.image(options), reduced(32));
  x = inception_conv(b, "Conv2d_2a_3x3", x, {.channels = 32, .kernel = 3, .padding = 0});
  x = inception_conv(b, "Conv2d_2b_3x3", x, square(64, 3));
  x = inception_conv(b, "Conv2d_3b_1x1", b.max_pool(x, 3, 2), square(80, 1));
  x = inception_conv(b, "Conv2d_4a_3x3", x, {.channels = 192, .kernel = 3, .padding = 0});
  x = b.max_pool(x, 3, 2);
  x = inception_a(b, "Mixed_5b", x, 32);
  x = inception_a(b, "Mixed_5c", x, 64);
  x = inception_a(b, "Mixed_5d", x, 64);
  x = inception_b(b, "Mixed_6a", x);
  x = inception_c(b, "Mixed_6b", x, 128);
  x = inception_c(b, "Mixed_6c", x, 160);
  x = inception_c(b, "Mixed_6d", x, 160);
  x = inception_c(b, "Mixed_6e", x, 192);
  x = inception_d(b, "Mixed_7a", x);
  x = inception_e(b, "Mixed_7b", x);
  x = inception_e(b, "Mixed_7c", x);
  return b.finish({{b.classifier("fc", x, 1000), "output"}});
}

}  // namespace pruner
