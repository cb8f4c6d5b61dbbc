// The ranking loss of the learned models, LambdaRank with NDCG weights (TenSet's form, which Pruner
// keeps): scores and labels in, loss and gradient out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace pruner {

struct RankingLoss {
  double loss = 0;
  std::vector<float> gradient;  // d loss / d score
};

/// The loss of one batch: over every pair with different labels, |change of NDCG when the two swap
/// places| * -log2(sigmoid(score of the better - score of the worse)), summed. `labels`: relative
/// throughputs in [0, 1]. With `groups`, one number a program, only programs of equal number are
/// compared, each group with an NDCG of its own; empty: all are.
RankingLoss lambda_rank(std::span<const float> scores,
                        std::span<const float> labels,
                        std::span<const int32_t> groups = {});

}  // namespace pruner
