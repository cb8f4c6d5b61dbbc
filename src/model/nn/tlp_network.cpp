#include "model/nn/tlp_network.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/parallel_for.h"

namespace pruner {
namespace {

constexpr int64_t kHidden = 256;
constexpr int64_t kHeads = 8;
constexpr int64_t kHeadWidth = kHidden / kHeads;
constexpr int64_t kLastWidth = 64;
constexpr int64_t kShared = 1024;  // programs whose distinct rows are encoded once
constexpr int64_t kRowBlock = 64;  // of the distinct rows, for one thread
constexpr int64_t kBlock = 16;     // programs whose activations stay in a core's cache

const WeightTensor& tensor(const ModelWeights& weights, const std::string& name) {
  return weights.tensors.find(name)->second;
}

Linear layer(const ModelWeights& weights, const std::string& name) {
  return Linear(tensor(weights, name + ".weight"), tensor(weights, name + ".bias"));
}

// One head of one program's attention: `rows` are the tokens' queries, keys and values, `weight`
// what each token stands for. What each query attends to goes to `context`, kHidden apart.
class HeadAttention {
 public:
  HeadAttention(std::span<const float* const> rows, std::span<const float> weight)
      : rows_(rows), log_weight_(weight.size()), softmax_(weight.size()) {
    for (size_t j = 0; j < weight.size(); ++j) log_weight_[j] = std::log(weight[j]);
    keys_.resize(weight.size() * kHeadWidth);
  }

  void operator()(int64_t head, float* context) {
    const int64_t first = head * kHeadWidth;
    const size_t tokens = rows_.size();
    for (size_t j = 0; j < tokens; ++j)  // keys by column, so that a query meets all at once
      for (size_t c = 0; c < kHeadWidth; ++c)
        keys_[c * tokens + j] = rows_[j][kHidden + first + static_cast<int64_t>(c)];
    for (size_t i = 0; i < tokens; ++i, context += kHidden) {
      const float sum = attend(rows_[i] + first);
      std::fill_n(context + first, kHeadWidth, 0.0f);
      for (size_t j = 0; j < tokens; ++j) {
        const float share = softmax_[j] / sum;
        const float* value = rows_[j] + 2 * kHidden + first;
        for (int64_t c = 0; c < kHeadWidth; ++c) context[first + c] += share * value[c];
      }
    }
  }

 private:
  /// Fills softmax_ but for the division by what is given.
  float attend(const float* query) {
    const float scale = 1 / std::sqrt(static_cast<float>(kHeadWidth));
    const size_t tokens = rows_.size();
    std::fill(softmax_.begin(), softmax_.end(), 0.0f);
    for (size_t c = 0; c < kHeadWidth; ++c) {
      const float* keys = keys_.data() + c * tokens;
      for (size_t j = 0; j < tokens; ++j) softmax_[j] += query[c] * keys[j];
    }
    float largest = -std::numeric_limits<float>::infinity(), sum = 0;
    for (size_t j = 0; j < tokens; ++j) {
      softmax_[j] = softmax_[j] * scale + log_weight_[j];
      largest = std::max(largest, softmax_[j]);
    }
    for (float& s : softmax_) sum += s = std::exp(s - largest);
    return sum;
  }

  std::span<const float* const> rows_;
  std::vector<float> log_weight_, softmax_, keys_;
};

}  // namespace

TlpNetwork::TlpNetwork(const ModelWeights& weights, size_t head)
    : form_(weights.form),
      project_in_(tensor(weights, "attention.in_proj_weight"),
                  tensor(weights, "attention.in_proj_bias")),
      project_out_(layer(weights, "attention.out_proj")),
      block0_(layer(weights, "l_list.0.0")),
      block1_(layer(weights, "l_list.1.0")) {
  for (const char* place : {"0", "2", "4", "6"})
    encoder_.push_back(layer(weights, std::string("encoder.") + place));
  const std::string decoder = decoder_name(weights.heads, head) + ".";
  for (const char* place : {"0", "2", "4"}) decoder_.push_back(layer(weights, decoder + place));
  last_ = tensor(weights, decoder + "6.weight").values;
  last_bias_ = tensor(weights, decoder + "6.bias").values[0];
}

TlpNetwork::Encoded TlpNetwork::encode(const PrimitiveBatch& batch, int jobs) const {
  const int64_t rows = static_cast<int64_t>(batch.rows.size()) / form_.width;
  Encoded encoded{Matrix(rows, kHidden), Matrix(rows, 3 * kHidden)};
  parallel_for((rows + kRowBlock - 1) / kRowBlock, jobs, [&](int64_t block) {
    const int64_t first = block * kRowBlock;
    Matrix x(std::min(kRowBlock, rows - first), form_.width);
    std::copy_n(batch.rows.data() + first * form_.width, x.values.size(), x.values.data());
    for (const Linear& linear : encoder_) x = linear(x, Activation::kRelu);
    const Matrix qkv = project_in_(x, Activation::kNone);
    std::ranges::copy(x.values, encoded.hidden.row(first));
    std::ranges::copy(qkv.values, encoded.qkv.row(first));
  });
  return encoded;
}

void TlpNetwork::score(const PrimitiveBatch& batch,
                       const Encoded& encoded,
                       int64_t first,
                       int64_t count,
                       float* scores) const {
  std::vector<const float*> hidden,
      qkv;  // of the tokens of all programs, without those of weight 0
  std::vector<float> weight;
  std::vector<size_t> ends;
  for (int64_t p = first; p < first + count; ++p) {
    for (int64_t t = p * batch.tokens; t < (p + 1) * batch.tokens; ++t) {
      const auto token = static_cast<size_t>(t);
      if (batch.weight[token] == 0) break;
      weight.push_back(batch.weight[token]);
      hidden.push_back(encoded.hidden.row(batch.row_of[token]));
      qkv.push_back(encoded.qkv.row(batch.row_of[token]));
    }
    ends.push_back(weight.size());
  }
  const auto tokens = static_cast<int64_t>(weight.size());
  Matrix context(tokens, kHidden);
  for (size_t p = 0, begin = 0; p < ends.size(); begin = ends[p++]) {
    const size_t length = ends[p] - begin;
    HeadAttention attention({qkv.data() + begin, length}, {weight.data() + begin, length});
    for (int64_t head = 0; head < kHeads; ++head)
      attention(head, context.row(static_cast<int64_t>(begin)));
  }
  Matrix z = project_out_(context, Activation::kNone);
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t j = 0; j < kHidden; ++j) z.row(t)[j] += hidden[static_cast<size_t>(t)][j];
  for (const Linear* block : {&block0_, &block1_}) {
    const Matrix next = (*block)(z, Activation::kRelu);
    for (size_t i = 0; i < z.values.size(); ++i) z.values[i] += next.values[i];
  }
  for (const Linear& linear : decoder_) z = linear(z, Activation::kRelu);
  for (size_t p = 0, begin = 0; p < ends.size(); begin = ends[p++]) {
    scores[p] = 0;
    for (size_t t = begin; t < ends[p]; ++t) {
      float step = last_bias_;
      for (int64_t j = 0; j < kLastWidth; ++j)
        step += last_[static_cast<size_t>(j)] * z.row(static_cast<int64_t>(t))[j];
      scores[p] += weight[t] * step;
    }
  }
}

std::vector<float> TlpNetwork::predict(std::span<const ProgramFeatures> programs, int jobs) const {
  std::vector<float> scores(programs.size());
  for (size_t first = 0; first < programs.size(); first += kShared) {
    const size_t end = std::min(programs.size(), first + kShared);
    std::vector<const ProgramFeatures*> shared;
    for (size_t i = first; i < end; ++i) shared.push_back(&programs[i]);
    const PrimitiveBatch batch = make_primitive_batch(shared, form_);
    const Encoded encoded = encode(batch, jobs);
    parallel_for((batch.programs + kBlock - 1) / kBlock, jobs, [&](int64_t block) {
      const int64_t from = block * kBlock;
      score(batch,
            encoded,
            from,
            std::min(kBlock, batch.programs - from),
            scores.data() + static_cast<int64_t>(first) + from);
    });
    for (size_t i = first; i < end; ++i)
      if (programs[i].primitives.empty()) scores[i] = -std::numeric_limits<float>::infinity();
  }
  return scores;
}

}  // namespace pruner
