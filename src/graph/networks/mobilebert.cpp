// MobileBERT as HuggingFace's MobileBertModel and MobileBertForSequenceClassification have it for
// google/mobilebert-uncased: narrow layers between bottlenecks, scales and shifts instead of layer
// norms (Sun et al. 2020).
#include "graph/networks/networks.h"
#include "graph/networks/transformer.h"

namespace pruner {

static constexpr int64_t kLayers = 24, kHidden = 512, kNarrow = 128, kInner = 512, kHeads = 4;
static constexpr int64_t kVocabulary = 30522, kPositions = 512, kEmbedding = 128;
static constexpr int64_t kFeedForwards = 4;

// Applies a scale and a shift per channel; a scale of about 0.7 keeps the size of a sum of two.
static ValueId no_norm(NetworkBuilder& b, const std::string& name, ValueId x, double scale) {
  const std::vector<int64_t> width = {b.shape(x).back()};
  const ValueId scaled = b.node("Mul", {x, b.random(name + ".weight", width, scale, 0.1 * scale)});
  return b.node("Add", {scaled, b.random(name + ".bias", width, 0, 0.1)});
}

// Returns linear() of y plus x.
static ValueId add_output(NetworkBuilder& b, const std::string& name, ValueId y, ValueId x) {
  const ValueId out = linear(b, name + ".dense", y, b.shape(x).back());
  return no_norm(b, name + ".LayerNorm", b.node("Add", {out, x}), 0.7);
}

static ValueId bottleneck(NetworkBuilder& b, const std::string& name, ValueId x) {
  return no_norm(b, name + ".LayerNorm", linear(b, name + ".dense", x, kNarrow), 1);
}

static ValueId intermediate(NetworkBuilder& b, const std::string& name, ValueId x) {
  return b.relu(linear(b, name + ".intermediate.dense", x, kInner, 2));
}

// Returns each word with the words after and before it, zeros past the ends.
static ValueId trigrams(NetworkBuilder& b, ValueId words) {
  const ValueId next = b.node("Pad", {words, b.integers("next", {0, -1, 0, 0, 1, 0})});
  const ValueId previous = b.node("Pad", {words, b.integers("previous", {0, 1, 0, 0, -1, 0})});
  return b.concat({next, words, previous}, 2);
}

static ValueId embeddings(NetworkBuilder& b, ValueId ids) {
  const int64_t length = b.shape(ids)[1];
  const ValueId table = b.random("embeddings.word", {kVocabulary, kEmbedding}, 0, 1);
  const ValueId positions = b.random("embeddings.position", {kPositions, kHidden}, 0, 1);
  const ValueId types = b.random("embeddings.token_type", {2, kHidden}, 0, 1);
  const ValueId words = b.node("Gather", {table, ids}, {{"axis", int64_t{0}}});
  ValueId x = linear(b, "embeddings.transformation", trigrams(b, words), kHidden);
  x = b.node("Add", {x, first_rows(b, "positions", positions, length)});
  x = b.node("Add", {x, first_rows(b, "token_types", types, 1)});
  return no_norm(b, "embeddings.LayerNorm", x, 1);
}

static ValueId layer(NetworkBuilder& b, const std::string& name, ValueId x) {
  const ValueId narrow = bottleneck(b, name + ".bottleneck.input", x);
  const ValueId shared = bottleneck(b, name + ".bottleneck.attention", x);
  const Attention self{shared, shared, x, kNarrow, kHeads, {}};
  ValueId y = b.node("Add", {attention(b, name + ".attention", self), narrow});
  y = no_norm(b, name + ".attention.output.LayerNorm", y, 0.7);
  for (int64_t i = 0; i < kFeedForwards - 1; ++i) {
    const std::string ffn = name + ".ffn." + std::to_string(i);
    y = add_output(b, ffn + ".output", intermediate(b, ffn, y), y);
  }
  y = add_output(b, name + ".output", intermediate(b, name, y), y);
  return add_output(b, name + ".output.bottleneck", y, x);
}

// Returns the last layer's output, [batch, sequence, hidden].
static ValueId encode(NetworkBuilder& b, const NetworkOptions& options) {
  const std::vector<int64_t> shape = {options.batch_size, options.sequence_length};
  ValueId x = embeddings(b, b.input("input_ids", shape, DType::kInt64));
  for (int64_t i = 0; i < kLayers; ++i) x = layer(b, "layer." + std::to_string(i), x);
  return x;
}

Result<Graph> build_mobilebert(const NetworkOptions& options) {
  NetworkBuilder b("mobilebert", options);
  const ValueId x = encode(b, options);
  return b.finish({{x, "last_hidden_state"}, {token(b, x, 0), "pooler_output"}});
}

// The classifier has two classes, HuggingFace's default.
Result<Graph> build_mobilebert_seq_class(const NetworkOptions& options) {
  NetworkBuilder b("mobilebert_seq_class", options);
  return b.finish({{b.dense("classifier", token(b, encode(b, options), 0), 2), "logits"}});
}

}  // namespace pruner
