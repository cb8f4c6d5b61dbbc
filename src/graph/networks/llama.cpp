// Llama as HuggingFace's LlamaForCausalLM has it, in the size of SmolLM2-135M.
#include "graph/networks/llama.h"

#include <cmath>

#include "graph/networks/networks.h"

namespace pruner {

static constexpr Llama kSmolLm2 = {"llama_135m", 30, 576, 9, 3, 1536, 49152, 100000};

namespace {

/// The places of a run's rows, and the keys that the rows see.
struct Places {
  ValueId cosine, sine;  // tables of rotary position embeddings: [1 or batch, rows, head / 2]
  ValueId mask;          // invalid without a cache
};

/// Returns cosines and sines of the angles of rotary position embeddings (Su et al. 2021).
Places places_of(NetworkBuilder& b, const Llama& llama, int64_t rows, const CachePlace& cache) {
  const int64_t pairs = llama.head() / 2;
  const std::vector<int64_t> shape = cache.has_cache() ? std::vector<int64_t>{cache.length, pairs}
                                                       : std::vector<int64_t>{1, rows, pairs};
  Tensor cosine(DType::kFloat32, shape), sine = cosine.clone();
  for (int64_t i = 0; i < cosine.num_elements(); ++i) {
    const double part = static_cast<double>(i % pairs) / static_cast<double>(pairs);
    const double angle = static_cast<double>(i / pairs) / std::pow(llama.rope_theta, part);
    cosine.set(i, std::cos(angle));
    sine.set(i, std::sin(angle));
  }
  Places places{b.constant("rotary.cosine", cosine), b.constant("rotary.sine", sine), {}};
  if (!cache.has_cache()) return places;
  const ValueId at = row_places(b, cache, rows);
  for (ValueId* table : {&places.cosine, &places.sine})
    *table = b.node("Gather", {*table, at}, {{"axis", int64_t{0}}});
  places.mask = causal_mask(b, cache, rows);
  return places;
}

/// Returns [batch, heads, positions, head] with each head as often as queries share it.
ValueId repeated(NetworkBuilder& b, const std::string& name, ValueId x, int64_t times) {
  const std::vector<int64_t> in = b.shape(x);
  const ValueId parts =
      b.node("Reshape", {x, b.integers(name + ".parts", {in[0], in[1], 1, in[2], in[3]})});
  const ValueId all = b.node(
      "Expand", {parts, b.integers(name + ".repeated", {in[0], in[1], times, in[2], in[3]})});
  return b.node("Reshape",
                {all, b.integers(name + ".heads", {in[0], in[1] * times, in[2], in[3]})});
}

/// Returns the attention of queries, keys and values [batch, rows, heads * head]. Queries and keys
/// are already turned to their places.
ValueId attend(NetworkBuilder& b,
               const Llama& llama,
               int64_t layer,
               ValueId query,
               ValueId key,
               ValueId value,
               const Places& places,
               const CachePlace& cache) {
  if (!cache.has_cache()) {
    return b.node("Attention",
                  {query, key, value},
                  {{"is_causal", int64_t{1}},
                   {"q_num_heads", llama.heads},
                   {"kv_num_heads", llama.key_value_heads}});
  }
  const auto whole = [&](const char* which, ValueId x) {
    const std::string name = std::to_string(layer) + "." + which;
    const ValueId heads = split_heads(b, name, x, llama.key_value_heads);
    return repeated(b, name, cached(b, cache, name, heads), llama.heads / llama.key_value_heads);
  };
  const std::string name = std::to_string(layer);
  const ValueId q = split_heads(b, name + ".query", query, llama.heads);
  return join_heads(
      b, name, attend(b, q, whole("key", key), whole("value", value), {.mask = places.mask}));
}

ValueId rms_norm(NetworkBuilder& b, const std::string& name, ValueId x, const Llama& llama) {
  const ValueId scale = b.random(name + ".weight", {llama.hidden}, 1, 0.2);
  return b.node("RMSNormalization", {x, scale}, {{"epsilon", llama.epsilon}});
}

/// Runs [batch, rows, hidden] through a layer.
ValueId block(NetworkBuilder& b,
              const Llama& llama,
              int64_t layer,
              ValueId x,
              const Places& places,
              const CachePlace& cache) {
  const std::string name = "model.layers." + std::to_string(layer);
  const ValueId seen = rms_norm(b, name + ".input_layernorm", x, llama);
  const auto heads = [&](const char* which, int64_t count) {
    return project(b, name + ".self_attn." + which, seen, count * llama.head());
  };
  const auto turned = [&](const char* which, int64_t count) {
    return b.node("RotaryEmbedding",
                  {heads(which, count), places.cosine, places.sine},
                  {{"num_heads", count}});
  };
  const ValueId query = turned("q_proj", llama.heads),
                key = turned("k_proj", llama.key_value_heads),
                value = heads("v_proj", llama.key_value_heads);
  const ValueId mixed = attend(b, llama, layer, query, key, value, places, cache);
  x = b.node("Add", {x, project(b, name + ".self_attn.o_proj", mixed, llama.hidden)});

  const ValueId y = rms_norm(b, name + ".post_attention_layernorm", x, llama);
  const ValueId gate =
      b.activation(project(b, name + ".mlp.gate_proj", y, llama.intermediate), Nonlinearity::kSilu);
  const ValueId gated =
      b.node("Mul", {gate, project(b, name + ".mlp.up_proj", y, llama.intermediate)});
  return b.node("Add", {x, project(b, name + ".mlp.down_proj", gated, llama.hidden)});
}

}  // namespace

ValueId llama_logits(NetworkBuilder& b, const Llama& llama, ValueId ids, const CachePlace& cache) {
  const Places places = places_of(b, llama, b.shape(ids)[1], cache);
  const int64_t batch = b.shape(ids)[0], length = b.shape(ids)[1];
  const ValueId words =
      b.weight("model.embed_tokens.weight", {llama.vocabulary, llama.hidden}, llama.hidden, 1);
  ValueId x = b.node("Gather", {words, ids}, {{"axis", int64_t{0}}});
  for (int64_t layer = 0; layer < llama.layers; ++layer)
    x = block(b, llama, layer, x, places, cache);
  x = rms_norm(b, "model.norm", x, llama);
  const ValueId rows = b.node("Reshape", {x, b.integers("rows", {batch * length, llama.hidden})});
  const ValueId logits = b.node("Gemm", {rows, words}, {{"transB", int64_t{1}}});
  return b.node("Reshape", {logits, b.integers("logits.shape", {batch, length, llama.vocabulary})});
}

Result<Graph> build_llama_135m(const NetworkOptions& options) {
  NetworkBuilder b(kSmolLm2.name, options);
  const int64_t batch = options.batch_size, length = options.sequence_length;
  const ValueId ids = b.input("input_ids", {batch, length}, DType::kInt64);
  const CachePlace cache = cache_place(b, options);
  return b.finish({{llama_logits(b, kSmolLm2, ids, cache), "logits"}});
}

}  // namespace pruner
