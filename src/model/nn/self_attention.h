// Multi-head self-attention of one program, for scoring: queries, keys and values of its tokens in,
// what each query attends to out. In vectors of this machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace pruner {

class SelfAttention {
 public:
  static constexpr int64_t kHeadWidth = 32;
  explicit SelfAttention(int64_t heads) : width_(static_cast<size_t>(heads * kHeadWidth)) {}

  /// `qkv`: each token's row of 3 * width, queries, keys, values; `weight`: how many equal tokens
  /// each stands for. Writes (tokens, width), the width being that of all heads, or the `mean` of
  /// these rows.
  void operator()(std::span<const float* const> qkv,
                  std::span<const float> weight,
                  bool mean,
                  float* context);

 private:
  size_t width_;
  std::vector<float> log_weight_, keys_, shares_;
};

}  // namespace pruner
