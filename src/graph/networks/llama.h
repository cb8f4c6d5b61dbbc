// Llama's decoder (Touvron et al. 2023).
#pragma once

#include "graph/networks/transformer.h"

namespace pruner {

/// The sizes, by the names of HuggingFace's LlamaConfig.
struct Llama {
  const char* name;
  int64_t layers, hidden, heads, key_value_heads, intermediate, vocabulary;
  double rope_theta = 10000, epsilon = 1e-5;

  int64_t head() const { return hidden / heads; }
};

/// "input_ids" [batch, rows] through all layers: logits [batch, rows, vocabulary], by the table of
/// the embeddings. With a cache the rows stand behind those of the runs before.
ValueId llama_logits(NetworkBuilder& b, const Llama& llama, ValueId ids, const CachePlace& cache);

}  // namespace pruner
