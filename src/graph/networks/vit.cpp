// Vision transformers (Dosovitskiy et al. 2021): ViT-B/16 as torchvision has it, the one that
// Pruner's evaluation tunes, as lucidrains' vit-pytorch has it, and the image encoder of CLIP
// ViT-B/32 (Radford et al. 2021) as HuggingFace's CLIPVisionModelWithProjection has it.
#include "graph/networks/networks.h"
#include "graph/networks/transformer.h"

namespace pruner {

namespace {

struct Vit {
  int64_t layers, patch;
  EncoderLayer layer;
};

}  // namespace

// CLIP's stand-in for GELU.
static ValueId quick_gelu(NetworkBuilder& b, ValueId x) {
  return b.node("Mul", {x, b.node("Sigmoid", {b.node("Mul", {x, b.scalar(1.702)})})});
}

static constexpr Vit kBase16 = {12, 16, {768, 3072, 12, 1e-6}};
static constexpr Vit kOfPruner = {6, 32, {1024, 2048, 16, 1e-5, false}};
static constexpr Vit kClip = {
    12, 32, {.hidden = 768, .inner = 3072, .heads = 12, .epsilon = 1e-5, .activation = quick_gelu}};

// [batch, patches, hidden], by a convolution.
static ValueId convolved_patches(NetworkBuilder& b, const Vit& vit, ValueId image, bool bias) {
  const ValueId x = b.conv("conv_proj",
                           image,
                           {.channels = vit.layer.hidden,
                            .kernel = vit.patch,
                            .stride = vit.patch,
                            .padding = 0,
                            .bias = bias});
  const int64_t batch = b.shape(x)[0], patches = b.shape(x)[2] * b.shape(x)[3];
  const ValueId flat =
      b.node("Reshape", {x, b.integers("patches", {batch, vit.layer.hidden, patches})});
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
  x = layer_norm(b, "patch_norm", x, vit.layer.epsilon);
  x = linear(b, "patch_proj", x, vit.layer.hidden);
  return layer_norm(b, "patch_proj_norm", x, vit.layer.epsilon);
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

static ValueId encode(NetworkBuilder& b, const Vit& vit, ValueId x) {
  for (int64_t layer = 0; layer < vit.layers; ++layer)
    x = encoder_layer(b, "encoder.layers.encoder_layer_" + std::to_string(layer), x, vit.layer);
  return x;
}

static Graph classify(NetworkBuilder& b, const Vit& vit, ValueId patches) {
  const ValueId x = encode(b, vit, tokens(b, patches));
  const ValueId normed = layer_norm(b, "encoder.ln", x, vit.layer.epsilon);
  return b.finish({{b.dense("heads.head", token(b, normed, 0), 1000), "output"}});
}

Result<Graph> build_vit(const NetworkOptions& options) {
  NetworkBuilder b("vit", options);
  return classify(b, kBase16, convolved_patches(b, kBase16, b.image(options), true));
}

Result<Graph> build_vit_pruner(const NetworkOptions& options) {
  NetworkBuilder b("vit_pruner", options);
  return classify(b, kOfPruner, projected_patches(b, kOfPruner, b.image(options)));
}

Result<Graph> build_clip_vit_b32(const NetworkOptions& options) {
  static constexpr int64_t kEmbedding = 512;
  NetworkBuilder b("clip_vit_b32", options);
  ValueId x = tokens(b, convolved_patches(b, kClip, b.image(options), false));
  x = encode(b, kClip, layer_norm(b, "ln_pre", x, kClip.layer.epsilon));
  x = layer_norm(b, "ln_post", token(b, x, 0), kClip.layer.epsilon);
  return b.finish({{project(b, "proj", x, kEmbedding), "image_embeds"}});
}

}  // namespace pruner
