#include "graph/networks/transformer.h"

#include <cmath>
#include <limits>

namespace pruner {

using Ints = std::vector<int64_t>;

static ValueId project(
    NetworkBuilder& b, const std::string& name, ValueId x, int64_t out, double gain = 1) {
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

// [batch, sequence, width] to [batch, heads, sequence, head], or with its last two exchanged.
static ValueId split_heads(
    NetworkBuilder& b, const std::string& name, ValueId x, int64_t heads, bool transposed) {
  const Ints& in = b.shape(x);
  const Ints split = {in[0], in[1], heads, in[2] / heads};
  const ValueId parts = b.node("Reshape", {x, b.integers(name + ".heads", split)});
  return b.node("Transpose", {parts}, {{"perm", transposed ? Ints{0, 2, 3, 1} : Ints{0, 2, 1, 3}}});
}

ValueId attention(NetworkBuilder& b, const std::string& name, const Attention& a) {
  const auto heads = [&](const char* which, ValueId x, bool transposed) {
    const std::string at = name + "." + which;
    const ValueId y = a.input_bias ? linear(b, at, x, a.width) : project(b, at, x, a.width);
    return split_heads(b, at, y, a.heads, transposed);
  };
  const ValueId q = heads("query", a.query, false), k = heads("key", a.key, true),
                v = heads("value", a.value, false);
  const auto head = static_cast<double>(a.width) / static_cast<double>(a.heads);
  ValueId scores = b.node("Div", {b.node("MatMul", {q, k}), b.scalar(std::sqrt(head))});
  if (a.mask.valid()) {
    const ValueId never = b.scalar(std::numeric_limits<float>::lowest());
    scores = b.node("Where", {a.mask, scores, never});
  }
  const ValueId weights = b.node("Softmax", {scores}, {{"axis", int64_t{-1}}});
  const ValueId mixed =
      b.node("Transpose", {b.node("MatMul", {weights, v})}, {{"perm", Ints{0, 2, 1, 3}}});
  const Ints joined = {b.shape(mixed)[0], b.shape(mixed)[1], a.width};
  const ValueId all = b.node("Reshape", {mixed, b.integers(name + ".join", joined)});
  return linear(b, name + ".output", all, a.width);
}

}  // namespace pruner
