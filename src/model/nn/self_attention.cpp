#include "model/nn/self_attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "support/ceil_div.h"

// The loop is compiled for each of these, and the machine's is taken when the program starts: by a
// function that runs before the thread sanitizer is there, which it must not watch.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define PRUNER_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define PRUNER_VECTOR_CLONES
#endif

namespace pruner {
namespace {

constexpr size_t kLanes = 16;
typedef float Vector __attribute__((vector_size(kLanes * sizeof(float)), aligned(sizeof(float))));
constexpr size_t kQueries = 4;  // queries that go through keys and values together
constexpr size_t kHeadWidth = SelfAttention::kHeadWidth;
static_assert(kHeadWidth == 2 * kLanes);

/// One head. `padded`: the tokens filled up to whole vectors.
struct Head {
  const float* const* qkv;
  size_t first, width;  // the head's first column, of queries, keys and values
  size_t tokens, padded;
  const float* keys;        // (kHeadWidth, padded)
  const float* log_weight;  // (padded)
  float* shares;            // (tokens filled up to kQueries, padded)
};

/// Computes the share of each token that a query takes.
PRUNER_VECTOR_CLONES void share(const Head& head) {
  const auto [qkv, first, width, tokens, padded, keys, log_weight, all] = head;
  float* shares = all;
  const float scale = 1 / std::sqrt(static_cast<float>(kHeadWidth));
  for (size_t i = 0; i < tokens; i += kQueries, shares += kQueries * padded) {
    const float* query[kQueries];
    for (size_t q = 0; q < kQueries; ++q) query[q] = qkv[std::min(i + q, tokens - 1)] + first;
    for (size_t j = 0; j < padded; j += kLanes) {
      Vector sum[kQueries] = {};
      for (size_t c = 0; c < kHeadWidth; ++c) {
        const Vector key = *reinterpret_cast<const Vector*>(keys + c * padded + j);
        for (size_t q = 0; q < kQueries; ++q) sum[q] += query[q][c] * key;
      }
      const Vector weight = *reinterpret_cast<const Vector*>(log_weight + j);
      for (size_t q = 0; q < kQueries; ++q)
        *reinterpret_cast<Vector*>(shares + q * padded + j) = sum[q] * scale + weight;
    }
    for (size_t q = 0; q < kQueries; ++q) {
      float* of = shares + q * padded;
      const float largest = *std::max_element(of, of + tokens);
      float sum = 0;
      for (size_t j = 0; j < tokens; ++j) sum += of[j] = std::exp(of[j] - largest);
      for (size_t j = 0; j < tokens; ++j) of[j] /= sum;
    }
  }
}

/// Computes `rows` rows of `context` from as many rows of shares.
PRUNER_VECTOR_CLONES void take(const Head& head, size_t rows, float* context) {
  const auto [qkv, first, width, tokens, padded, keys, log_weight, all] = head;
  const float* shares = all;
  for (size_t i = 0; i < rows; i += kQueries, shares += kQueries * padded) {
    Vector out[kQueries][2] = {};
    for (size_t j = 0; j < tokens; ++j) {
      const Vector* value = reinterpret_cast<const Vector*>(qkv[j] + 2 * width + first);
      for (size_t q = 0; q < kQueries; ++q) {
        out[q][0] += shares[q * padded + j] * value[0];
        out[q][1] += shares[q * padded + j] * value[1];
      }
    }
    for (size_t q = 0; q < std::min(kQueries, rows - i); ++q)
      std::memcpy(context + (i + q) * width + first, out[q], sizeof(out[q]));
  }
}

}  // namespace

void SelfAttention::operator()(std::span<const float* const> qkv,
                               std::span<const float> weight,
                               bool mean,
                               float* context) {
  const size_t tokens = qkv.size(), padded = ceil_div(tokens, kLanes) * kLanes;
  log_weight_.assign(padded, -std::numeric_limits<float>::infinity());
  for (size_t j = 0; j < tokens; ++j) log_weight_[j] = std::log(weight[j]);
  keys_.assign(padded * kHeadWidth, 0.0f);
  shares_.resize(padded * (tokens + kQueries));
  const float all = std::accumulate(weight.begin(), weight.end(), 0.0f);
  for (size_t first = 0; first < width_; first += kHeadWidth) {
    for (size_t j = 0; j < tokens; ++j)  // keys by column: a query meets many keys at once
      for (size_t c = 0; c < kHeadWidth; ++c) keys_[c * padded + j] = qkv[j][width_ + first + c];
    float* shares = shares_.data();
    const Head head = {
        qkv.data(), first, width_, tokens, padded, keys_.data(), log_weight_.data(), shares};
    share(head);
    if (mean) {
      for (size_t j = 0; j < tokens; ++j) {
        float sum = 0;
        for (size_t i = 0; i < tokens; ++i) sum += weight[i] * shares[i * padded + j];
        shares[j] = sum / all;
      }
    }
    take(head, mean ? 1 : tokens, context);
  }
}

}  // namespace pruner
