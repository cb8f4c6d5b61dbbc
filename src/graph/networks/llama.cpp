// Llama as HuggingFace's LlamaForCausalLM has it, in the size of SmolLM2-135M.
#include "graph/networks/llama.h"

#include <cmath>

#include "graph/networks/networks.h"
#include "graph/networks/transformer.h"

namespace pruner {

static constexpr Llama kSmolLm2 = {"llama_135m", 30, 576, 9, 3, 1536, 49152, 100000};

RotaryTables rotary_tables(NetworkBuilder& b, const Llama& llama, int64_t first, int64_t count) {
  const int64_t pairs = llama.hidden / llama.heads / 2;
  Tensor cosine(DType::kFloat32, {1, count, pairs}), sine = cosine.clone();
  for (int64_t i = 0; i < cosine.num_elements(); ++i) {
    const double part = static_cast<double>(i % pairs) / static_cast<double>(pairs);
    const double angle = static_cast<double>(first + i / pairs) / std::pow(llama.rope_theta, part);
    cosine.set(i, std::cos(angle));
    sine.set(i, std::sin(angle));
  }
  return {b.constant("rotary.cosine", cosine), b.constant("rotary.sine", sine)};
}

LlamaAttention causal_attention(NetworkBuilder& b, const Llama& llama) {
  return [&](int64_t, ValueId query, ValueId key, ValueId value) {
    return b.node("Attention",
                  {query, key, value},
                  {{"is_causal", int64_t{1}},
                   {"q_num_heads", llama.heads},
                   {"kv_num_heads", llama.key_value_heads}});
  };
}

static ValueId rms_norm(NetworkBuilder& b, const std::string& name, ValueId x, const Llama& llama) {
  const ValueId scale = b.random(name + ".weight", {llama.hidden}, 1, 0.2);
  return b.node("RMSNormalization", {x, scale}, {{"epsilon", llama.epsilon}});
}

ValueId llama_block(NetworkBuilder& b,
                    const Llama& llama,
                    int64_t layer,
                    ValueId x,
                    const RotaryTables& places,
                    const LlamaAttention& attend) {
  const std::string name = "model.layers." + std::to_string(layer);
  const int64_t head = llama.hidden / llama.heads;
  const ValueId seen = rms_norm(b, name + ".input_layernorm", x, llama);
  const auto heads = [&](const char* which, int64_t count) {
    return project(b, name + ".self_attn." + which, seen, count * head);
  };
  const auto turned = [&](const char* which, int64_t count) {
    return b.node("RotaryEmbedding",
                  {heads(which, count), places.cosine, places.sine},
                  {{"num_heads", count}});
  };
  const ValueId query = turned("q_proj", llama.heads),
                key = turned("k_proj", llama.key_value_heads),
                value = heads("v_proj", llama.key_value_heads);
  const ValueId mixed = attend(layer, query, key, value);
  x = b.node("Add", {x, project(b, name + ".self_attn.o_proj", mixed, llama.hidden)});

  const ValueId y = rms_norm(b, name + ".post_attention_layernorm", x, llama);
  const ValueId gate =
      b.activation(project(b, name + ".mlp.gate_proj", y, llama.intermediate), Nonlinearity::kSilu);
  const ValueId gated =
      b.node("Mul", {gate, project(b, name + ".mlp.up_proj", y, llama.intermediate)});
  return b.node("Add", {x, project(b, name + ".mlp.down_proj", gated, llama.hidden)});
}

ValueId llama_logits(NetworkBuilder& b,
                     const Llama& llama,
                     ValueId ids,
                     const RotaryTables& places,
                     const LlamaAttention& attend) {
  const int64_t batch = b.shape(ids)[0], length = b.shape(ids)[1];
  const ValueId words =
      b.weight("model.embed_tokens.weight", {llama.vocabulary, llama.hidden}, llama.hidden, 1);
  ValueId x = b.node("Gather", {words, ids}, {{"axis", int64_t{0}}});
  for (int64_t layer = 0; layer < llama.layers; ++layer)
    x = llama_block(b, llama, layer, x, places, attend);
  x = rms_norm(b, "model.norm", x, llama);
  const ValueId rows = b.node("Reshape", {x, b.integers("rows", {batch * length, llama.hidden})});
  const ValueId logits = b.node("Gemm", {rows, words}, {{"transB", int64_t{1}}});
  return b.node("Reshape", {logits, b.integers("logits.shape", {batch, length, llama.vocabulary})});
}

Result<Graph> build_llama_135m(const NetworkOptions& options) {
  NetworkBuilder b(kSmolLm2.name, options);
  const int64_t batch = options.batch_size, length = options.sequence_length;
  const ValueId ids = b.input("input_ids", {batch, length}, DType::kInt64);
  const RotaryTables places = rotary_tables(b, kSmolLm2, 0, length);
  const ValueId logits = llama_logits(b, kSmolLm2, ids, places, causal_attention(b, kSmolLm2));
  return b.finish({{logits, "logits"}});
}

}  // namespace pruner
