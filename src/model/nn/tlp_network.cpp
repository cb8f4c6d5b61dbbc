#include "model/nn/tlp_network.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/nn/self_attention.h"
#include "support/parallel_for.h"

namespace pruner {
namespace {

constexpr int64_t kHidden = SelfAttention::kWidth;
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
    for (const Linear& linear : encoder_) x = linear(x, OutputFunction::kRelu);
    const Matrix qkv = project_in_(x, OutputFunction::kNone);
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
  SelfAttention attention;
  for (size_t p = 0, begin = 0; p < ends.size(); begin = ends[p++]) {
    const size_t length = ends[p] - begin;
    attention({qkv.data() + begin, length},
              {weight.data() + begin, length},
              context.row(static_cast<int64_t>(begin)));
  }
  Matrix z = project_out_(context, OutputFunction::kNone);
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t j = 0; j < kHidden; ++j) z.row(t)[j] += hidden[static_cast<size_t>(t)][j];
  for (const Linear* block : {&block0_, &block1_}) {
    const Matrix next = (*block)(z, OutputFunction::kRelu);
    for (size_t i = 0; i < z.values.size(); ++i) z.values[i] += next.values[i];
  }
  for (const Linear& linear : decoder_) z = linear(z, OutputFunction::kRelu);
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
