// The generator of DCGAN as relay's testing networks have it: an image from 100 numbers, by
// transposed convolutions that each double the size. 64 x 64 as published; other sizes begin with
// more than 4 x 4.
#include "graph/networks/network_builder.h"
#include "graph/networks/networks.h"

namespace pruner {

static constexpr int64_t kCode = 100, kFeatures = 128;

// A 4x4 kernel at stride 2: four products a channel make one output.
static ValueId doubled(
    NetworkBuilder& b, const std::string& name, ValueId x, int64_t channels, double gain) {
  const int64_t in = b.shape(x)[1];
  const ValueId w = b.weight(name + ".weight", {in, channels, 4, 4}, 4 * in, gain);
  return b.node("ConvTranspose",
                {x, w},
                {{"kernel_shape", std::vector<int64_t>{4, 4}},
                 {"pads", std::vector<int64_t>{1, 1, 1, 1}},
                 {"strides", std::vector<int64_t>{2, 2}}});
}

Result<Graph> build_dcgan(const NetworkOptions& options) {
  NetworkBuilder b("dcgan", options);
  const int64_t batch = options.batch_size, start = options.image_size / 16;
  const int64_t channels = 8 * kFeatures;
  const ValueId code = b.input("data", {batch, kCode}, DType::kFloat32);
  const ValueId w = b.weight("dense.weight", {channels * start * start, kCode}, kCode, 2);
  ValueId x = b.relu(b.node("Gemm", {code, w}, {{"transB", int64_t{1}}}));
  x = b.node("Reshape", {x, b.integers("start", {batch, channels, start, start})});
  for (int i = 2; i <= 4; ++i) {
    const std::string name = "g" + std::to_string(i);
    x = doubled(b, name + ".deconv", x, channels >> (i - 1), 2);
    x = b.relu(b.norm(name + ".norm", x));
  }
  return b.finish({{b.node("Tanh", {doubled(b, "g5.deconv", x, 3, 1)}), "image"}});
}

}  // namespace pruner
