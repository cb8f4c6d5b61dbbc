// BERT with 6 layers, 8 heads, hidden size 512 and 2048 inside: TenSet's bert_tiny. Written as
// exporters do before opset 17: layer norms, GELU and attention as their elementary operators.
#include <cmath>

#include "graph/networks/network_builder.h"

namespace pruner {

static constexpr int64_t kLayers = 6, kHeads = 8, kHidden = 512, kInner = 2048;
static constexpr int64_t kHead = kHidden / kHeads;
static constexpr int64_t kVocabulary = 30522;

static ValueId linear(NetworkBuilder& b, const std::string& name, ValueId x, int64_t out) {
  const int64_t in = b.shape(x).back();
  const ValueId w = b.weight(name + ".weight", {in, out}, in, 1);
  return b.node("Add", {b.random(name + ".bias", {out}, 0, 0.1), b.node("MatMul", {x, w})});
}

static ValueId layer_norm(NetworkBuilder& b, const std::string& name, ValueId x) {
  const auto mean = [&](ValueId v) {
    return b.node("ReduceMean", {v, b.integers(name + ".axes", {-1})});
  };
  const ValueId d = b.node("Sub", {x, mean(x)});
  const ValueId variance = mean(b.node("Pow", {d, b.scalar(2)}));
  const ValueId deviation = b.node("Sqrt", {b.node("Add", {variance, b.scalar(1e-12)})});
  const ValueId scale = b.random(name + ".weight", {kHidden}, 1, 0.2);
  const ValueId bias = b.random(name + ".bias", {kHidden}, 0, 0.1);
  return b.node("Add", {b.node("Mul", {b.node("Div", {d, deviation}), scale}), bias});
}

static ValueId gelu(NetworkBuilder& b, ValueId x) {
  const ValueId erf = b.node("Erf", {b.node("Div", {x, b.scalar(std::sqrt(2.0))})});
  const ValueId twice = b.node("Mul", {x, b.node("Add", {erf, b.scalar(1)})});
  return b.node("Mul", {twice, b.scalar(0.5)});
}

// [batch, sequence, hidden] to [batch, heads, sequence, head], or with its last two exchanged.
static ValueId heads(NetworkBuilder& b, const std::string& name, ValueId x, bool transposed) {
  const std::vector<int64_t> split = {b.shape(x)[0], b.shape(x)[1], kHeads, kHead};
  const std::vector<int64_t> order =
      transposed ? std::vector<int64_t>{0, 2, 3, 1} : std::vector<int64_t>{0, 2, 1, 3};
  const ValueId parts = b.node("Reshape", {x, b.integers(name + ".heads", split)});
  return b.node("Transpose", {parts}, {{"perm", order}});
}

static ValueId attention(NetworkBuilder& b, const std::string& name, ValueId x) {
  const auto project = [&](const char* which, bool transposed) {
    const std::string at = name + "." + which;
    return heads(b, at, linear(b, at, x, kHidden), transposed);
  };
  const ValueId q = project("query", false), k = project("key", true), v = project("value", false);
  const ValueId root = b.scalar(std::sqrt(static_cast<double>(kHead)));
  const ValueId scores = b.node("Div", {b.node("MatMul", {q, k}), root});
  const ValueId weights = b.node("Softmax", {scores}, {{"axis", int64_t{-1}}});
  const ValueId mixed = b.node(
      "Transpose", {b.node("MatMul", {weights, v})}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  const ValueId joined = b.node("Reshape", {mixed, b.integers(name + ".join", b.shape(x))});
  return linear(b, name + ".output", joined, kHidden);
}

static ValueId embeddings(NetworkBuilder& b, ValueId ids) {
  const int64_t length = b.shape(ids)[1];
  const ValueId words = b.random("embeddings.word", {kVocabulary, kHidden}, 0, 1);
  const ValueId positions = b.random("embeddings.position", {1, length, kHidden}, 0, 1);
  const ValueId type = b.random("embeddings.token_type", {1, 1, kHidden}, 0, 1);
  const ValueId word = b.node("Gather", {words, ids}, {{"axis", int64_t{0}}});
  const ValueId sum = b.node("Add", {b.node("Add", {word, type}), positions});
  return layer_norm(b, "embeddings.norm", sum);
}

Graph build_bert_tiny(const NetworkOptions& options) {
  NetworkBuilder b("bert_tiny");
  const std::vector<int64_t> shape = {options.batch_size, options.sequence_length};
  ValueId x = embeddings(b, b.input("input_ids", shape, DType::kInt64));
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    const std::string name = "layer." + std::to_string(layer);
    x = layer_norm(
        b, name + ".attention.norm", b.node("Add", {attention(b, name + ".attention", x), x}));
    const ValueId inner = gelu(b, linear(b, name + ".intermediate", x, kInner));
    x = layer_norm(
        b, name + ".norm", b.node("Add", {linear(b, name + ".output", inner, kHidden), x}));
  }
  const ValueId first =
      b.node("Gather", {x, b.constant("first", Tensor(DType::kInt64, {}))}, {{"axis", int64_t{1}}});
  const ValueId w = b.weight("pooler.weight", {kHidden, kHidden}, kHidden, 1);
  const ValueId bias = b.random("pooler.bias", {kHidden}, 0, 0.1);
  const ValueId dense = b.node("Gemm", {first, w, bias}, {{"transB", int64_t{1}}});
  return b.finish({{x, "last_hidden_state"}, {b.node("Tanh", {dense}), "pooler_output"}});
}

}  // namespace pruner
