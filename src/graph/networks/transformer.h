// The layers that the transformers share, written as exporters do before opset 17: layer norms,
// GELU and attention as their elementary operators. Data are [batch, sequence, width].
#pragma once

#include "graph/networks/network_builder.h"

namespace pruner {

/// Returns x times a weight of `out` columns.
ValueId project(
    NetworkBuilder& b, const std::string& name, ValueId x, int64_t out, double gain = 1);
/// Returns x times a weight of `out` columns, plus a bias.
ValueId linear(NetworkBuilder& b, const std::string& name, ValueId x, int64_t out, double gain = 1);
ValueId layer_norm(NetworkBuilder& b, const std::string& name, ValueId x, double epsilon);
/// Returns GELU computed with the error function.
ValueId gelu(NetworkBuilder& b, ValueId x);
/// Returns the first `count` rows of a table.
ValueId first_rows(NetworkBuilder& b, const std::string& name, ValueId table, int64_t count);
/// Returns element `index` of the sequence: [batch, width].
ValueId token(NetworkBuilder& b, ValueId x, int64_t index);

/// The places of a run's rows among all rows that a decoder has seen: `past` rows of each item of
/// the batch, int64 [batch], came before; caches have room for `length` rows.
struct CachePlace {
  ValueId past;
  int64_t length = 0;

  bool has_cache() const { return length > 0; }
};
/// Returns a place at the input "past_length" of the network, if the network has a cache.
CachePlace cache_place(NetworkBuilder& b, const NetworkOptions& options);
/// Returns the places of the run's rows: int64 [batch, rows], or [rows] without a cache.
ValueId row_places(NetworkBuilder& b, const CachePlace& cache, int64_t rows);
/// Returns which keys each row sees, the keys up to its own place: bool [batch or 1, 1, rows,
/// keys].
ValueId causal_mask(NetworkBuilder& b, const CachePlace& cache, int64_t rows);
/// Puts keys or values [batch, heads, rows, head] behind those of earlier runs. Returns the whole
/// cache [batch, heads, length, head], which is a state; `x` without a cache. `name`: "0.key".
ValueId cached(NetworkBuilder& b, const CachePlace& cache, const std::string& name, ValueId x);

/// These turn [batch, sequence, width] into [batch, heads, sequence, head], and back.
ValueId split_heads(NetworkBuilder& b, const std::string& name, ValueId x, int64_t heads);
ValueId join_heads(NetworkBuilder& b, const std::string& name, ValueId x);

/// The values that change the scores of queries and keys; each broadcasts to the scores, or is
/// invalid.
struct ScoreMask {
  ValueId mask;       // bool: the keys that are seen
  ValueId bias = {};  // added to the scores
};
/// Returns softmax(query key^T / sqrt(head)) value, of [batch, heads, positions, head].
ValueId attend(
    NetworkBuilder& b, ValueId query, ValueId key, ValueId value, const ScoreMask& scores);

struct Attention {
  ValueId query, key, value;
  int64_t width = 0, heads = 0;  // width of the result, and the number of heads that it has
  ValueId mask;                  // bool, broadcasts to the scores; invalid: all true
  bool input_bias = true;        // whether the projections of query, key and value have a bias
  bool key_bias = true;          // whether the key's projection has one, if the others do
  ValueId bias = {};             // added to the scores, to which the bias broadcasts; invalid: none
  CachePlace cache = {};         // cache of keys and values
  std::string cache_name = {};   // `name` in the states past_key_values.<name>.key and .value
};
/// Returns multi-head attention with its four projections (Vaswani et al. 2017).
ValueId attention(NetworkBuilder& b, const std::string& name, const Attention& a);

/// A layer of an encoder that normalizes the inputs of its two parts, not their outputs (pre-LN),
/// with torchvision's names.
struct EncoderLayer {
  int64_t hidden, inner, heads;
  double epsilon;
  bool input_bias = true, key_bias = true;  // same as Attention's
  ValueId (*activation)(NetworkBuilder&, ValueId) = gelu;
};
ValueId encoder_layer(NetworkBuilder& b,
                      const std::string& name,
                      ValueId x,
                      const EncoderLayer& layer);

}  // namespace pruner
