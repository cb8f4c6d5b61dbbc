// Vision transformers (Dosovitskiy et al. 2021): ViT-B/16 as torchvision has it, and the one that
// Pruner's evaluation tunes, as lucidrains' vit-pytorch has it.
#include "graph/networks/networks.h"
#include "graph/networks/transformer.h"

namespace pruner {

namespace {

struct Vit {
  int64_t layers, hidden, inner, heads, patch;
  double epsilon;
  bool input_bias;  // of the attention's first projections
};

}  // namespace

static constexpr Vit kBase16 = {12, 768, 3072, 12, 16, 1e-6, true};
static constexpr Vit kOfPruner = {6, 1024, 2048, 16, 32, 1e-5, false};

// [batch, patches, hidden], by a convolution.
static ValueId convolved_patches(NetworkBuilder& b, const Vit& vit, ValueId image) {
  const ValueId x = b.conv("conv_proj",
                           image,
                           {.channels = vit.hidden,
                            .kernel = vit.patch,
                            .stride = vit.patch,
                            .padding = 0,
                            .bias = true});
  const int64_t batch = b.shape(x)[0], patches = b.shape(x)[2] * b.shape(x)[3];
  const ValueId flat = b.node("Reshape", {x, b.integers("patches", {batch, vit.hidden, patches})});
  return b.node("Transpose", {flat}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
}

// The same, each patch's pixels as one vector that is normed, projected and normed again.
static ValueId projected_patches(NetworkBuilder& b, const Vit& vit, ValueId image) {
  const std::vector<int64_t> in = b.shape(image);
  const int64_t rows = in[2] / vit.patch, columns = in[3] / vit.patch;
  ValueId x = b.node(
      "Reshape", {image, b.integers("split", {in[0], in[1], rows, vit.patch, columns, vit.patch})});
  x = b.node("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 2, 4, 3, 5, 1}}});
  const std::vector<int64_t> joined = {in[0], rows * columns, vit.patch * vit.patch * in[1]};
  x = b.node("Reshape", {x, b.integers("joined", joined)});
  x = layer_norm(b, "patch_norm", x, vit.epsilon);
  x = linear(b, "patch_proj", x, vit.hidden);
  return layer_norm(b, "patch_proj_norm", x, vit.epsilon);
}

// The patches after one token for the class, and where they are.
static ValueId tokens(NetworkBuilder& b, ValueId patches) {
  const std::vector<int64_t> in = b.shape(patches);
  const int64_t batch = in[0], count = in[1] + 1, hidden = in[2];
  const ValueId class_token = b.random("class_token", {1, 1, hidden}, 0, 1);
  const ValueId repeated =
      b.node("Expand", {class_token, b.integers("class_tokens", {batch, 1, hidden})});
  const ValueId positions = b.random("encoder.pos_embedding", {1, count, hidden}, 0, 1);
  return b.node("Add", {b.concat({repeated, patches}), positions});
}

static Graph classify(NetworkBuilder& b, const Vit& vit, ValueId patches) {
  ValueId x = tokens(b, patches);
  for (int64_t layer = 0; layer < vit.layers; ++layer) {
    const std::string name = "encoder.layers.encoder_layer_" + std::to_string(layer);
    const ValueId seen = layer_norm(b, name + ".ln_1", x, vit.epsilon);
    const Attention self{seen, seen, seen, vit.hidden, vit.heads, {}, vit.input_bias};
    x = b.node("Add", {attention(b, name + ".self_attention", self), x});
    ValueId y = layer_norm(b, name + ".ln_2", x, vit.epsilon);
    y = gelu(b, linear(b, name + ".mlp.0", y, vit.inner));
    x = b.node("Add", {linear(b, name + ".mlp.3", y, vit.hidden), x});
  }
  x = layer_norm(b, "encoder.ln", x, vit.epsilon);
  return b.finish({{b.dense("heads.head", token(b, x, 0), 1000), "output"}});
}

Result<Graph> build_vit(const NetworkOptions& options) {
  NetworkBuilder b("vit", options);
  return classify(b, kBase16, convolved_patches(b, kBase16, b.image(options)));
}

Result<Graph> build_vit_pruner(const NetworkOptions& options) {
  NetworkBuilder b("vit_pruner", options);
  return classify(b, kOfPruner, projected_patches(b, kOfPruner, b.image(options)));
}

}  // namespace pruner
