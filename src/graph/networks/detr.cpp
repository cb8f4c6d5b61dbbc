// DETR on ResNet-50 (Carion et al. 2020; facebookresearch/detr's detr_resnet50): an encoder over
// the backbone's features, a decoder of 100 queries, and of each query a class and a box.
#include <cmath>

#include "graph/networks/networks.h"
#include "graph/networks/resnet.h"
#include "graph/networks/transformer.h"

namespace pruner {

static constexpr int64_t kLayers = 6, kHidden = 256, kInner = 2048, kHeads = 8;
static constexpr int64_t kQueries = 100, kClasses = 91;

// Sines and cosines of each place's row, then of its column: [1, height * width, hidden].
static ValueId positions(NetworkBuilder& b, int64_t height, int64_t width) {
  const double turn = 2 * 3.14159265358979323846;
  const int64_t half = kHidden / 2;
  Tensor table(DType::kFloat32, {1, height * width, kHidden});
  int64_t at = 0;
  for (int64_t place = 0; place < height * width; ++place) {
    const auto row = static_cast<double>(place / width + 1);
    const auto column = static_cast<double>(place % width + 1);
    for (int64_t i = 0; i < kHidden; ++i) {
      const double part = i < half ? row / (static_cast<double>(height) + 1e-6)
                                   : column / (static_cast<double>(width) + 1e-6);
      const auto pair = static_cast<double>(i % half / 2 * 2);
      const double angle = turn * part / std::pow(10000, pair / static_cast<double>(half));
      table.set(at++, i % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
  return b.constant("positions", table);
}

namespace {

class Transformer {
 public:
  Transformer(NetworkBuilder& b, ValueId places, ValueId queries)
      : b_(b), places_(places), queries_(queries) {}

  ValueId encoder_layer(const std::string& name, ValueId x) {
    const ValueId placed = add(x, places_);
    const Attention self{placed, placed, x, kHidden, kHeads, {}};
    x = add_norm(name + ".norm1", x, attention(b_, name + ".self_attn", self));
    return add_norm(name + ".norm2", x, feed_forward(name, x));
  }

  ValueId decoder_layer(const std::string& name, ValueId x, ValueId memory) {
    const ValueId asked = add(x, queries_);
    const Attention self{asked, asked, x, kHidden, kHeads, {}};
    x = add_norm(name + ".norm1", x, attention(b_, name + ".self_attn", self));
    const Attention cross{add(x, queries_), add(memory, places_), memory, kHidden, kHeads, {}};
    x = add_norm(name + ".norm2", x, attention(b_, name + ".multihead_attn", cross));
    return add_norm(name + ".norm3", x, feed_forward(name, x));
  }

  ValueId norm(const std::string& name, ValueId x) { return layer_norm(b_, name, x, 1e-5); }

 private:
  ValueId add(ValueId x, ValueId y) { return b_.node("Add", {x, y}); }
  ValueId add_norm(const std::string& name, ValueId x, ValueId y) { return norm(name, add(x, y)); }
  ValueId feed_forward(const std::string& name, ValueId x) {
    const ValueId inner = b_.relu(linear(b_, name + ".linear1", x, kInner, 2));
    return linear(b_, name + ".linear2", inner, kHidden);
  }

  NetworkBuilder& b_;
  ValueId places_, queries_;
};

}  // namespace

Result<Graph> build_detr(const NetworkOptions& options) {
  NetworkBuilder b("detr", options);
  ValueId x = resnet_features(b, "backbone.0.body.", b.image(options), {});
  x = b.conv("input_proj", x, {.channels = kHidden, .bias = true});
  const int64_t batch = options.batch_size, height = b.shape(x)[2], width = b.shape(x)[3];
  x = b.node("Reshape", {x, b.integers("places", {batch, kHidden, height * width})});
  x = b.node("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 2, 1}}});

  const ValueId queries = b.random("query_embed", {1, kQueries, kHidden}, 0, 1);
  Transformer t(b, positions(b, height, width), queries);
  for (int64_t i = 0; i < kLayers; ++i) {
    x = t.encoder_layer("transformer.encoder.layers." + std::to_string(i), x);
  }
  ValueId y = b.constant("targets", Tensor(DType::kFloat32, {batch, kQueries, kHidden}));
  for (int64_t i = 0; i < kLayers; ++i) {
    y = t.decoder_layer("transformer.decoder.layers." + std::to_string(i), y, x);
  }
  y = t.norm("transformer.decoder.norm", y);
  const ValueId logits = linear(b, "class_embed", y, kClasses + 1);
  ValueId box = b.relu(linear(b, "bbox_embed.layers.0", y, kHidden, 2));
  box = b.relu(linear(b, "bbox_embed.layers.1", box, kHidden, 2));
  box = b.node("Sigmoid", {linear(b, "bbox_embed.layers.2", box, 4)});
  return b.finish({{logits, "pred_logits"}, {box, "pred_boxes"}});
}

}  // namespace pruner
