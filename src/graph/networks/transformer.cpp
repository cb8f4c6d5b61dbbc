#include "graph/networks/transformer.h"

#include <cmath>
#include <limits>
#include <numeric>

namespace pruner {

using Ints = std::vector<int64_t>;

ValueId project(NetworkBuilder& b, const std::string& name, ValueId x, int64_t out, double gain) {
  const int64_t in = b.shape(x).back();
  return b.node("MatMul", {x, b.weight(name + ".weight", {in, out}, in, gain)});
}

ValueId linear(NetworkBuilder& b, const std::string& name, ValueId x, int64_t out, double gain) {
  const ValueId y = project(b, name, x, out, gain);
  return b.node("Add", {b.random(name + ".bias", {out}, 0, 0.1), y});
}

ValueId layer_norm(NetworkBuilder& b, const std::string& name, ValueId x, double epsilon) {
  const int64_t width = b.shape(x).back();
  const auto mean = [&](ValueId v) {
    return b.node("ReduceMean", {v, b.integers(name + ".axes", {-1})});
  };
  const ValueId d = b.node("Sub", {x, mean(x)});
  const ValueId variance = mean(b.node("Pow", {d, b.scalar(2)}));
  const ValueId deviation = b.node("Sqrt", {b.node("Add", {variance, b.scalar(epsilon)})});
  const ValueId scale = b.random(name + ".weight", {width}, 1, 0.2);
  const ValueId bias = b.random(name + ".bias", {width}, 0, 0.1);
  return b.node("Add", {b.node("Mul", {b.node("Div", {d, deviation}), scale}), bias});
}

ValueId gelu(NetworkBuilder& b, ValueId x) {
  const ValueId erf = b.node("Erf", {b.node("Div", {x, b.scalar(std::sqrt(2.0))})});
  const ValueId twice = b.node("Mul", {x, b.node("Add", {erf, b.scalar(1)})});
  return b.node("Mul", {twice, b.scalar(0.5)});
}

ValueId first_rows(NetworkBuilder& b, const std::string& name, ValueId table, int64_t count) {
  const ValueId start = b.integers(name + ".start", {0}), end = b.integers(name + ".end", {count});
  return b.node("Slice", {table, start, end});
}

ValueId token(NetworkBuilder& b, ValueId x, int64_t index) {
  Tensor at(DType::kInt64, {});
  at.set_int(0, index);
  return b.node("Gather", {x, b.constant("token", at)}, {{"axis", int64_t{1}}});
}

CachePlace cache_place(NetworkBuilder& b, const NetworkOptions& options) {
  if (options.cache_length == 0) return {};
  return {b.input("past_length", {options.batch_size}, DType::kInt64), options.cache_length};
}

static ValueId count(NetworkBuilder& b, const std::string& name, int64_t n) {
  Ints all(static_cast<size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  return b.integers(name, all);
}

ValueId row_places(NetworkBuilder& b, const CachePlace& cache, int64_t rows) {
  const ValueId own = count(b, "rows", rows);
  if (!cache.has_cache()) return own;
  const Ints shape = {b.shape(cache.past)[0], 1};
  return b.node("Add", {b.node("Reshape", {cache.past, b.integers("past.shape", shape)}), own});
}

ValueId causal_mask(NetworkBuilder& b, const CachePlace& cache, int64_t rows) {
  if (!cache.has_cache()) {
    Tensor mask(DType::kBool, {1, 1, rows, rows});
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j <= i; ++j) mask.set_int(i * rows + j, 1);
    }
    return b.constant("causal_mask", mask);
  }
  const Ints shape = {b.shape(cache.past)[0], 1, rows, 1};
  const ValueId places =
      b.node("Reshape", {row_places(b, cache, rows), b.integers("places.shape", shape)});
  return b.node("LessOrEqual", {count(b, "keys", cache.length), places});
}

ValueId cached(NetworkBuilder& b, const CachePlace& cache, const std::string& name, ValueId x) {
  if (!cache.has_cache()) return x;
  Ints shape = b.shape(x);
  shape[2] = cache.length;
  const ValueId past = b.state("past_key_values." + name, shape);
  const ValueId present = b.node("TensorScatter", {past, x, cache.past}, {{"axis", int64_t{2}}});
  b.next_state(past, present, "present." + name);
  return present;
}

ValueId split_heads(NetworkBuilder& b, const std::string& name, ValueId x, int64_t heads) {
  const Ints& in = b.shape(x);
  const Ints split = {in[0], in[1], heads, in[2] / heads};
  const ValueId parts = b.node("Reshape", {x, b.integers(name + ".heads", split)});
  return b.node("Transpose", {parts}, {{"perm", Ints{0, 2, 1, 3}}});
}

ValueId join_heads(NetworkBuilder& b, const std::string& name, ValueId x) {
  const Ints& in = b.shape(x);
  const Ints joined = {in[0], in[2], in[1] * in[3]};
  const ValueId parts = b.node("Transpose", {x}, {{"perm", Ints{0, 2, 1, 3}}});
  return b.node("Reshape", {parts, b.integers(name + ".join", joined)});
}

ValueId attend(
    NetworkBuilder& b, ValueId query, ValueId key, ValueId value, const ScoreMask& masked) {
  const ValueId columns = b.node("Transpose", {key}, {{"perm", Ints{0, 1, 3, 2}}});
  const auto head = static_cast<double>(b.shape(query)[3]);
  ValueId scores = b.node("Div", {b.node("MatMul", {query, columns}), b.scalar(std::sqrt(head))});
  if (masked.bias.valid()) scores = b.node("Add", {scores, masked.bias});
  if (masked.mask.valid()) {
    const ValueId never = b.scalar(std::numeric_limits<float>::lowest());
    scores = b.node("Where", {masked.mask, scores, never});
  }
  const ValueId weights = b.node("Softmax", {scores}, {{"axis", int64_t{-1}}});
  return b.node("MatMul", {weights, value});
}

ValueId attention(NetworkBuilder& b, const std::string& name, const Attention& a) {
  const auto heads = [&](const char* which, ValueId x, bool bias) {
    const std::string at = name + "." + which;
    const ValueId y = bias ? linear(b, at, x, a.width) : project(b, at, x, a.width);
    return split_heads(b, at, y, a.heads);
  };
  const auto whole = [&](const char* which, ValueId x) {
    return cached(b, a.cache, a.cache_name + "." + which, x);
  };
  const ValueId q = heads("query", a.query, a.input_bias);
  const ValueId k = whole("key", heads("key", a.key, a.input_bias && a.key_bias));
  const ValueId v = whole("value", heads("value", a.value, a.input_bias));
  const ValueId all = join_heads(b, name, attend(b, q, k, v, {.mask = a.mask, .bias = a.bias}));
  return linear(b, name + ".output", all, a.width);
}

ValueId encoder_layer(NetworkBuilder& b,
                      const std::string& name,
                      ValueId x,
                      const EncoderLayer& layer) {
  const ValueId seen = layer_norm(b, name + ".ln_1", x, layer.epsilon);
  const Attention self{
      seen, seen, seen, layer.hidden, layer.heads, {}, layer.input_bias, layer.key_bias};
  x = b.node("Add", {attention(b, name + ".self_attention", self), x});
  ValueId y = layer_norm(b, name + ".ln_2", x, layer.epsilon);
  y = layer.activation(b, linear(b, name + ".mlp.0", y, layer.inner));
  return b.node("Add", {linear(b, name + ".mlp.3", y, layer.hidden), x});
}

}  // namespace pruner
