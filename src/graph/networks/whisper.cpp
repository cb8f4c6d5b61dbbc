// The encoder of Whisper tiny (Radford et al. 2022) as openai/whisper has it: spectrograms of 80
// bands, of which two frames are a position.
#include <cmath>

#include "graph/networks/networks.h"
#include "graph/networks/transformer.h"

namespace pruner {

static constexpr int64_t kBands = 80, kLayers = 4;
static constexpr EncoderLayer kLayer = {
    .hidden = 384, .inner = 1536, .heads = 6, .epsilon = 1e-5, .key_bias = false};

static ValueId conv(
    NetworkBuilder& b, const std::string& name, ValueId x, int64_t channels, int64_t stride) {
  const int64_t in = b.shape(x)[1];
  const ValueId weight = b.weight(name + ".weight", {channels, in, 3}, 3 * in, 2);
  return b.node("Conv",
                {x, weight, b.random(name + ".bias", {channels}, 0, 0.1)},
                {{"kernel_shape", std::vector<int64_t>{3}},
                 {"pads", std::vector<int64_t>{1, 1}},
                 {"strides", std::vector<int64_t>{stride}}});
}

// The sines of a position times rates from 1 down to 1 / 10000, then the cosines.
static ValueId positions(NetworkBuilder& b, int64_t count) {
  const int64_t half = kLayer.hidden / 2;
  Tensor table(DType::kFloat32, {count, kLayer.hidden});
  for (int64_t i = 0; i < table.num_elements(); ++i) {
    const int64_t at = i / kLayer.hidden, column = i % kLayer.hidden;
    const double part = static_cast<double>(column % half) / static_cast<double>(half - 1);
    const double angle = static_cast<double>(at) * std::pow(10000, -part);
    table.set(i, column < half ? std::sin(angle) : std::cos(angle));
  }
  return b.constant("positional_embedding", table);
}

Result<Graph> build_whisper_tiny(const NetworkOptions& options) {
  NetworkBuilder b("whisper_tiny", options);
  const int64_t length = options.sequence_length;
  ValueId x = b.input("mel", {options.batch_size, kBands, 2 * length}, DType::kFloat32);
  x = gelu(b, conv(b, "conv1", x, kLayer.hidden, 1));
  x = gelu(b, conv(b, "conv2", x, kLayer.hidden, 2));
  x = b.node("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  x = b.node("Add", {x, positions(b, length)});
  for (int64_t layer = 0; layer < kLayers; ++layer)
    x = encoder_layer(b, "blocks." + std::to_string(layer), x, kLayer);
  return b.finish({{layer_norm(b, "ln_post", x, kLayer.epsilon), "last_hidden_state"}});
}

}  // namespace pruner
