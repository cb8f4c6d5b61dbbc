// The ranking losses of the learned models: scores and labels in, loss and gradient out. LambdaRank
// with NDCG weights is TenSet's, which Pruner keeps; the pairs' is for training from files.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace pruner {

enum class RankingLossKind {
  kLambdaRank,
  kPairs,
};

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

/// As above: over every pair with different labels, (2^4y_a - 2^4y_b) / 4n * -log(sigmoid(s_a -
/// s_b)), with n programs in the group; and over every program 0.1 * (s - 4y)², both without the
/// mean of the group. Every pair counts, those of fast programs more; the squares say how far
/// apart.
RankingLoss pair_loss(std::span<const float> scores,
                      std::span<const float> labels,
                      std::span<const int32_t> groups = {});

/// The loss of a kind.
RankingLoss ranking_loss(RankingLossKind kind,
                         std::span<const float> scores,
                         std::span<const float> labels,
                         std::span<const int32_t> groups = {});

}  // namespace pruner
