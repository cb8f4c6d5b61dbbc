// Llama's decoder (Touvron et al. 2023), by its blocks. What is attended to stands outside of them,
// so that a network may put keys and values of earlier positions before those of a block.
#pragma once

#include <functional>

#include "graph/networks/network_builder.h"

namespace pruner {

/// The sizes, by the names of HuggingFace's LlamaConfig.
struct Llama {
  const char* name;
  int64_t layers, hidden, heads, key_value_heads, intermediate, vocabulary;
  double rope_theta = 10000, epsilon = 1e-5;
};

/// Cosines and sines of the angles of rotary position embeddings (Su et al. 2021) at the positions
/// from `first` on: [1, positions, head / 2].
struct RotaryTables {
  ValueId cosine, sine;
};
RotaryTables rotary_tables(NetworkBuilder& b, const Llama& llama, int64_t first, int64_t count);

/// Attention of a layer's queries to its keys, both turned to their positions, and values:
/// [batch, positions, heads * head], of which keys and values have fewer heads.
using LlamaAttention =
    std::function<ValueId(int64_t layer, ValueId query, ValueId key, ValueId value)>;
/// Of each position to those up to it.
LlamaAttention causal_attention(NetworkBuilder& b, const Llama& llama);

/// [batch, positions, hidden] through a layer.
ValueId llama_block(NetworkBuilder& b,
                    const Llama& llama,
                    int64_t layer,
                    ValueId x,
                    const RotaryTables& places,
                    const LlamaAttention& attend);

/// "input_ids" [batch, positions] through all layers: logits [batch, positions, vocabulary], by the
/// table of the embeddings.
ValueId llama_logits(NetworkBuilder& b,
                     const Llama& llama,
                     ValueId ids,
                     const RotaryTables& places,
                     const LlamaAttention& attend);

}  // namespace pruner
