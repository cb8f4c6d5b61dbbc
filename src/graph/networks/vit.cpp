// Vision transformer ViT-B/16 as torchvision has it (Dosovitskiy et al. 2021).
#include "graph/networks/networks.h"
#include "graph/networks/transformer.h"

namespace pruner {

static constexpr int64_t kLayers = 12, kHidden = 768, kInner = 3072, kHeads = 12, kPatch = 16;
static constexpr double kEpsilon = 1e-6;

// A token for each patch of the image, after one for the class, and where they are.
static ValueId tokens(NetworkBuilder& b, ValueId image) {
  ValueId x =
      b.conv("conv_proj",
             image,
             {.channels = kHidden, .kernel = kPatch, .stride = kPatch, .padding = 0, .bias = true});
  const int64_t batch = b.shape(x)[0], patches = b.shape(x)[2] * b.shape(x)[3];
  x = b.node("Reshape", {x, b.integers("patches", {batch, kHidden, patches})});
  x = b.node("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  const ValueId class_token = b.random("class_token", {1, 1, kHidden}, 0, 1);
  const ValueId repeated =
      b.node("Expand", {class_token, b.integers("class_tokens", {batch, 1, kHidden})});
  const ValueId positions = b.random("encoder.pos_embedding", {1, patches + 1, kHidden}, 0, 1);
  return b.node("Add", {b.concat({repeated, x}), positions});
}

Result<Graph> build_vit(const NetworkOptions& options) {
  NetworkBuilder b("vit", options);
  ValueId x = tokens(b, b.image(options));
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    const std::string name = "encoder.layers.encoder_layer_" + std::to_string(layer);
    const ValueId seen = layer_norm(b, name + ".ln_1", x, kEpsilon);
    const Attention self{seen, seen, seen, kHidden, kHeads, {}};
    x = b.node("Add", {attention(b, name + ".self_attention", self), x});
    ValueId y = layer_norm(b, name + ".ln_2", x, kEpsilon);
    y = gelu(b, linear(b, name + ".mlp.0", y, kInner));
    x = b.node("Add", {linear(b, name + ".mlp.3", y, kHidden), x});
  }
  x = layer_norm(b, "encoder.ln", x, kEpsilon);
  return b.finish({{b.dense("heads.head", token(b, x, 0), 1000), "output"}});
}

}  // namespace pruner
