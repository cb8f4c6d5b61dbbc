// GPT-2 (124M) as HuggingFace's GPT2LMHeadModel has it; the logits' weight is the word table.
#include <cmath>

#include "graph/networks/networks.h"
#include "graph/networks/transformer.h"

namespace pruner {

static constexpr int64_t kLayers = 12, kHidden = 768, kHeads = 12;
static constexpr int64_t kVocabulary = 50257, kPositions = 1024;
static constexpr double kEpsilon = 1e-5;

// Returns GELU computed with tanh: x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
static ValueId gelu_new(NetworkBuilder& b, ValueId x) {
  const ValueId cube = b.node("Mul", {b.node("Pow", {x, b.scalar(3)}), b.scalar(0.044715)});
  const double root = std::sqrt(2 / 3.14159265358979323846);
  const ValueId inner = b.node("Mul", {b.node("Add", {x, cube}), b.scalar(root)});
  const ValueId factor = b.node("Add", {b.node("Tanh", {inner}), b.scalar(1)});
  return b.node("Mul", {b.node("Mul", {x, b.scalar(0.5)}), factor});
}

Result<Graph> build_gpt2(const NetworkOptions& options) {
  NetworkBuilder b("gpt2", options);
  const int64_t batch = options.batch_size, length = options.sequence_length;
  const ValueId ids = b.input("input_ids", {batch, length}, DType::kInt64);
  const ValueId words = b.weight("wte", {kVocabulary, kHidden}, kHidden, 1);
  const ValueId positions = b.weight("wpe", {kPositions, kHidden}, kHidden, 1);
  const CachePlace cache = cache_place(b, options);
  const ValueId mask = causal_mask(b, cache, length);
  const auto rows_of = [&](ValueId table, ValueId at) {
    return b.node("Gather", {table, at}, {{"axis", int64_t{0}}});
  };
  const ValueId places = cache.has_cache() ? rows_of(positions, row_places(b, cache, length))
                                           : first_rows(b, "positions", positions, length);
  ValueId x = b.node("Add", {rows_of(words, ids), places});
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    const std::string name = "h." + std::to_string(layer);
    const ValueId seen = layer_norm(b, name + ".ln_1", x, kEpsilon);
    const Attention self{.query = seen,
                         .key = seen,
                         .value = seen,
                         .width = kHidden,
                         .heads = kHeads,
                         .mask = mask,
                         .cache = cache,
                         .cache_name = std::to_string(layer)};
    x = b.node("Add", {attention(b, name + ".attn", self), x});
    ValueId y = layer_norm(b, name + ".ln_2", x, kEpsilon);
    y = gelu_new(b, linear(b, name + ".mlp.c_fc", y, 4 * kHidden));
    x = b.node("Add", {linear(b, name + ".mlp.c_proj", y, kHidden), x});
  }
  x = layer_norm(b, "ln_f", x, kEpsilon);
  const ValueId rows = b.node("Reshape", {x, b.integers("rows", {batch * length, kHidden})});
  const ValueId logits = b.node("Gemm", {rows, words}, {{"transB", int64_t{1}}});
  const ValueId shaped =
      b.node("Reshape", {logits, b.integers("logits.shape", {batch, length, kVocabulary})});
  return b.finish({{shaped, "logits"}});
}

}  // namespace pruner
