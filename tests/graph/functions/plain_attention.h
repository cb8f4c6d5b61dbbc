// Attention by its formula, for tests of the operators that are made of it.
#pragma once

#include <functional>

#include "graph/small_graph.h"

namespace pruner {

/// `ScoreRule` changes the score of a query and a key: (batch, head, query, key, score) -> score.
using ScoreRule = std::function<double(int64_t, int64_t, int64_t, int64_t, double)>;

inline constexpr double kHidden = -std::numeric_limits<double>::infinity();

/// softmax(rule(q * k * scale)) * v of [batch, heads, positions, width]; a query that sees no key
/// gives 0. A scale of 0 is 1 / sqrt(width).
inline Tensor plain_attention(const Tensor& q,
                              const Tensor& k,
                              const Tensor& v,
                              double scale = 0,
                              const ScoreRule& rule = {}) {
  const int64_t heads = q.shape()[1], queries = q.shape()[2], width = q.shape()[3];
  const int64_t shared = k.shape()[1], keys = k.shape()[2], out_width = v.shape()[3];
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(width));
  Tensor out(DType::kFloat32, {q.shape()[0], heads, queries, out_width});
  for (int64_t row = 0; row < q.shape()[0] * heads * queries; ++row) {
    const int64_t i = row % queries, h = row / queries % heads, b = row / queries / heads;
    const int64_t first_key = (b * shared + h * shared / heads) * keys;
    std::vector<double> weights;
    double sum = 0;
    for (int64_t j = 0; j < keys; ++j) {
      double score = 0;
      for (int64_t e = 0; e < width; ++e)
        score += q.get(row * width + e) * k.get((first_key + j) * width + e);
      score *= scale;
      weights.push_back(std::exp(rule ? rule(b, h, i, j, score) : score));
      sum += weights.back();
    }
    for (int64_t j = 0; j < keys && sum > 0; ++j) {
      for (int64_t e = 0; e < out_width; ++e) {
        const double more =
            weights[static_cast<size_t>(j)] / sum * v.get((first_key + j) * out_width + e);
        out.set(row * out_width + e, out.get(row * out_width + e) + more);
      }
    }
  }
  return out;
}

/// [batch, positions, heads * width] as [batch, heads, positions, width], and back.
inline Tensor parted_heads(const Tensor& x, int64_t heads) {
  const std::vector<int64_t>& s = x.shape();
  return permuted(x.reshaped({s[0], s[1], heads, s[2] / heads}), Ints{0, 2, 1, 3});
}
inline Tensor joined_heads(const Tensor& x) {
  const std::vector<int64_t>& s = x.shape();
  return permuted(x, Ints{0, 2, 1, 3}).reshaped({s[0], s[2], s[1] * s[3]});
}

/// a, then b, along the positions of [batch, heads, positions, width].
inline Tensor joined_positions(const Tensor& a, const Tensor& b) {
  return run_op("Concat", {a, b}, {{"axis", int64_t{2}}});
}

inline double causal(int64_t, int64_t, int64_t i, int64_t j, double score) {
  return j <= i ? score : kHidden;
}

}  // namespace pruner
