// BERT as HuggingFace's BertModel has it, in TenSet's four sizes (its medium is wider than
// Google's), and its BertForSequenceClassification.
#include "graph/networks/networks.h"
#include "graph/networks/transformer.h"

namespace pruner {

static constexpr int64_t kVocabulary = 30522, kPositions = 512;
static constexpr double kEpsilon = 1e-12;

namespace {

struct Bert {
  const char* name;
  int64_t layers, hidden, inner, heads;
};

}  // namespace

static ValueId embeddings(NetworkBuilder& b, ValueId ids, int64_t hidden) {
  const int64_t length = b.shape(ids)[1];
  const ValueId words = b.random("embeddings.word", {kVocabulary, hidden}, 0, 1);
  const ValueId positions = b.random("embeddings.position", {kPositions, hidden}, 0, 1);
  const ValueId types = b.random("embeddings.token_type", {2, hidden}, 0, 1);
  const ValueId word = b.node("Gather", {words, ids}, {{"axis", int64_t{0}}});
  const ValueId typed = b.node("Add", {word, first_rows(b, "token_types", types, 1)});
  const ValueId sum = b.node("Add", {typed, first_rows(b, "positions", positions, length)});
  return layer_norm(b, "embeddings.norm", sum, kEpsilon);
}

// Returns the last layer's output, [batch, sequence, hidden].
static ValueId encode(NetworkBuilder& b, const Bert& bert, const NetworkOptions& options) {
  const std::vector<int64_t> shape = {options.batch_size, options.sequence_length};
  ValueId x = embeddings(b, b.input("input_ids", shape, DType::kInt64), bert.hidden);
  const auto add_norm = [&](const std::string& name, ValueId y) {
    return layer_norm(b, name, b.node("Add", {y, x}), kEpsilon);
  };
  for (int64_t layer = 0; layer < bert.layers; ++layer) {
    const std::string name = "layer." + std::to_string(layer);
    const Attention self{x, x, x, bert.hidden, bert.heads, {}};
    x = add_norm(name + ".attention.norm", attention(b, name + ".attention", self));
    const ValueId inner = gelu(b, linear(b, name + ".intermediate", x, bert.inner));
    x = add_norm(name + ".norm", linear(b, name + ".output", inner, bert.hidden));
  }
  return x;
}

static ValueId pool(NetworkBuilder& b, ValueId x) {
  return b.node("Tanh", {b.dense("pooler", token(b, x, 0), b.shape(x)[2])});
}

static Graph build(const Bert& bert, const NetworkOptions& options) {
  NetworkBuilder b(bert.name, options);
  const ValueId x = encode(b, bert, options);
  return b.finish({{x, "last_hidden_state"}, {pool(b, x), "pooler_output"}});
}

Result<Graph> build_bert_tiny(const NetworkOptions& options) {
  return build({"bert_tiny", 6, 512, 2048, 8}, options);
}

Result<Graph> build_bert_base(const NetworkOptions& options) {
  return build({"bert_base", 12, 768, 3072, 12}, options);
}

// The classifier has two classes, HuggingFace's default.
Result<Graph> build_bert_base_seq_class(const NetworkOptions& options) {
  const Bert bert = {"bert_base_seq_class", 12, 768, 3072, 12};
  NetworkBuilder b(bert.name, options);
  return b.finish({{b.dense("classifier", pool(b, encode(b, bert, options)), 2), "logits"}});
}

Result<Graph> build_bert_medium(const NetworkOptions& options) {
  return build({"bert_medium", 12, 1024, 4096, 16}, options);
}

Result<Graph> build_bert_large(const NetworkOptions& options) {
  return build({"bert_large", 24, 1024, 4096, 16}, options);
}

}  // namespace pruner
