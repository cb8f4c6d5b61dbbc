// Features of sequences of tokens.
#include <algorithm>

#include "graph/functions/body.h"

namespace pruner {

namespace {

/// The n-grams of one length that are counted, and the features that their counts are.
struct Grams {
  int64_t length;
  std::vector<std::vector<int64_t>> tokens;
  std::vector<int64_t> features;
};

}  // namespace

// ONNX: the pool has the n-grams of length 1 first, then those of length 2, ...; ngram_counts says
// where in it each length begins.
static Result<std::vector<Grams>> grams_of(const OpCall& call) {
  const std::vector<int64_t> pool = call.integers("pool_int64s");
  const std::vector<int64_t> starts = call.integers("ngram_counts");
  const std::vector<int64_t> features = call.integers("ngram_indexes");
  std::vector<Grams> all;
  size_t gram = 0;
  for (size_t n = 0; n < starts.size(); ++n) {
    const auto size = static_cast<int64_t>(pool.size());
    const int64_t end = n + 1 < starts.size() ? starts[n + 1] : size;
    const auto length = static_cast<int64_t>(n) + 1;
    if (starts[n] < 0 || end < starts[n] || end > size || (end - starts[n]) % length != 0)
      return Error("ngram_counts has ", starts[n], " for n-grams of ", length);
    Grams grams{length, {}, {}};
    for (int64_t at = starts[n]; at < end; at += length) {
      if (gram >= features.size() || features[gram] < 0)
        return Error("ngram_indexes has too few elements, or one below 0");
      grams.tokens.emplace_back(pool.begin() + at, pool.begin() + at + length);
      grams.features.push_back(features[gram++]);
    }
    all.push_back(std::move(grams));
  }
  if (features.empty()) return Error("ngram_indexes is empty");
  return all;
}

// How often each occurs in the rows of x, its tokens `step` apart: [rows, n-grams].
static Term counts(Body& b, Term x, const Grams& grams, int64_t step) {
  const int64_t places = x.extent(1) - (grams.length - 1) * step;
  const auto n = static_cast<int64_t>(grams.tokens.size());
  Term all;
  for (int64_t k = 0; k < grams.length; ++k) {
    Tensor tokens(x.dtype(), {n});
    for (int64_t g = 0; g < n; ++g)
      tokens.set_int(g, grams.tokens[static_cast<size_t>(g)][static_cast<size_t>(k)]);
    const Term here = b.unsqueeze(b.slice(x, 1, k * step, k * step + places), 2);
    const Term equal = b.add("Equal", {here, b.constant(std::move(tokens))});
    all = k == 0 ? equal : b.add("And", {all, equal});
  }
  return b.add(
      "ReduceSum", {b.cast(all, DType::kFloat32), b.integers({{1}})}, {{"keepdims", int64_t{0}}});
}

static void tf_idf_vectorizer(Body& b) {
  const OpCall& call = b.call();
  if (call.has_attribute("pool_strings"))
    return b.fail(Error("n-grams of strings are not supported; those of integers are"));
  const Result<std::vector<Grams>> pool = grams_of(call);
  if (!pool.ok()) return b.fail(pool.error());
  const Term given = b.input(0);
  const Term x = given.rank() == 1 ? b.unsqueeze(given, 0) : given;
  const int64_t shortest = call.integer("min_gram_length", 1);
  const int64_t longest = call.integer("max_gram_length", shortest);
  const std::vector<int64_t> indexes = call.integers("ngram_indexes");
  const int64_t features = *std::ranges::max_element(indexes) + 1;
  // Each n-gram's counts are columns of their own, which a matmul brings to their features.
  std::vector<Term> columns;
  std::vector<int64_t> feature_of;
  for (const Grams& grams : *pool) {
    if (grams.length < shortest || grams.length > longest || grams.tokens.empty()) continue;
    const int64_t skips = grams.length == 1 ? 0 : call.integer("max_skip_count", 0);
    for (int64_t step = 1; step <= skips + 1; ++step) {
      if ((grams.length - 1) * step >= x.extent(1)) break;
      columns.push_back(counts(b, x, grams, step));
      feature_of.insert(feature_of.end(), grams.features.begin(), grams.features.end());
    }
  }
  Tensor none(DType::kFloat32, {x.extent(0), features});
  Term counted = b.constant(std::move(none));
  if (!columns.empty()) {
    Tensor to(DType::kFloat32, {static_cast<int64_t>(feature_of.size()), features});
    for (size_t i = 0; i < feature_of.size(); ++i)
      to.set(static_cast<int64_t>(i) * features + feature_of[i], 1);
    const Term all = columns.size() == 1 ? columns[0] : b.concat(columns, 1);
    counted = b.add("MatMul", {all, b.constant(std::move(to))});
  }
  const std::string mode = call.text("mode", "TF");
  const std::vector<double> given_weights = call.numbers("weights");
  Tensor weights(DType::kFloat32, {features});
  for (int64_t i = 0; i < features; ++i) weights.set(i, 1);
  for (size_t i = 0; i < indexes.size() && i < given_weights.size(); ++i)
    weights.set(indexes[i], given_weights[i]);
  if (mode == "IDF") {
    const Term some = b.add("Greater", {counted, b.scalar(0, DType::kFloat32)});
    counted = b.cast(some, DType::kFloat32);
  }
  if (mode != "TF") counted = counted * b.constant(std::move(weights));
  b.output(0, given.rank() == 1 ? b.reshape(counted, {features}) : counted);
}

// clang-format off
static constexpr Function kFeatureFunctions[] = {
    {"TfIdfVectorizer", 1, 1, "max_gram_length:i max_skip_count:i min_gram_length:i mode:s ngram_counts:I ngram_indexes:I pool_int64s:I pool_strings:S weights:F", tf_idf_vectorizer},
};
// clang-format on

std::span<const Function> feature_functions() { return kFeatureFunctions; }

}  // namespace pruner
