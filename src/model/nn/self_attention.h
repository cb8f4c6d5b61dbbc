// Multi-head self-attention of one program, for scoring: queries, keys and values of its tokens in,
// what each query attends to out. In vectors of this machine.
#pragma once

#include <span>
#include <vector>

namespace pruner {

class SelfAttention {
 public:
  static constexpr int kHeads = 8, kHeadWidth = 32, kWidth = kHeads * kHeadWidth;

  /// `qkv`: each token's row of 3 * kWidth, queries, keys, values; `weight`: how many equal tokens
  /// each stands for. Writes (tokens, kWidth).
  void operator()(std::span<const float* const> qkv, std::span<const float> weight, float* context);

 private:
  std::vector<float> log_weight_, keys_, shares_;
};

}  // namespace pruner
