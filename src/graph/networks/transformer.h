// What the transformers share, written as exporters do before opset 17: layer norms, GELU and
// attention as their elementary operators. Data are [batch, sequence, width].
#pragma once

#include "graph/networks/network_builder.h"

namespace pruner {

/// x times a weight of `out` columns.
ValueId project(
    NetworkBuilder& b, const std::string& name, ValueId x, int64_t out, double gain = 1);
/// The same, and a bias.
ValueId linear(NetworkBuilder& b, const std::string& name, ValueId x, int64_t out, double gain = 1);
ValueId layer_norm(NetworkBuilder& b, const std::string& name, ValueId x, double epsilon);
/// With the error function.
ValueId gelu(NetworkBuilder& b, ValueId x);
/// The first `count` rows of a table.
ValueId first_rows(NetworkBuilder& b, const std::string& name, ValueId table, int64_t count);
/// Element `index` of the sequence: [batch, width].
ValueId token(NetworkBuilder& b, ValueId x, int64_t index);

/// Where the rows of a run of a decoder stand among those that it has seen: `past` of each item of
/// the batch, int64 [batch], came before; caches have room for `length`.
struct CachePlace {
  ValueId past;
  int64_t length = 0;

  bool has_cache() const { return length > 0; }
};
/// "past_length" of the network, if it has a cache.
CachePlace cache_place(NetworkBuilder& b, const NetworkOptions& options);
/// The places of the run's rows: int64 [batch, rows], or [rows] without a cache.
ValueId row_places(NetworkBuilder& b, const CachePlace& cache, int64_t rows);
/// Which keys a row sees: those up to its own place; truth values [batch or 1, 1, rows, keys].
ValueId causal_mask(NetworkBuilder& b, const CachePlace& cache, int64_t rows);
/// Keys or values [batch, heads, rows, head] put behind those of the runs before: the whole cache
/// [batch, heads, length, head], which is a state; `x` without a cache. `name`: "0.key".
ValueId cached(NetworkBuilder& b, const CachePlace& cache, const std::string& name, ValueId x);

/// [batch, sequence, width] to [batch, heads, sequence, head], and back.
ValueId split_heads(NetworkBuilder& b, const std::string& name, ValueId x, int64_t heads);
ValueId join_heads(NetworkBuilder& b, const std::string& name, ValueId x);

/// What is done to the scores of queries and keys; each broadcasts to them, or is not there.
struct ScoreMask {
  ValueId mask;       // truth values: the keys that are seen
  ValueId bias = {};  // added
};
/// softmax(query key^T / sqrt(head)) value, of [batch, heads, positions, head].
ValueId attend(
    NetworkBuilder& b, ValueId query, ValueId key, ValueId value, const ScoreMask& scores);

struct Attention {
  ValueId query, key, value;
  int64_t width = 0, heads = 0;  // of the result, and into how many parts it is cut
  ValueId mask;                  // truth values that broadcast to the scores; invalid: all true
  bool input_bias = true;        // of the projections of query, key and value
  bool key_bias = true;          // of the key's, where they have one
  ValueId bias = {};             // added to the scores, to which it broadcasts; invalid: none
  CachePlace cache = {};         // of keys and values,
  std::string cache_name = {};   // whose states are past_key_values.<name>.key and .value
};
/// Multi-head attention with its four projections (Vaswani et al. 2017).
ValueId attention(NetworkBuilder& b, const std::string& name, const Attention& a);

/// A layer of an encoder that normalizes what its two parts read, not what they give (pre-LN), with
/// torchvision's names.
struct EncoderLayer {
  int64_t hidden, inner, heads;
  double epsilon;
  bool input_bias = true, key_bias = true;  // as Attention's
  ValueId (*activation)(NetworkBuilder&, ValueId) = gelu;
};
ValueId encoder_layer(NetworkBuilder& b,
                      const std::string& name,
                      ValueId x,
                      const EncoderLayer& layer);

}  // namespace pruner
