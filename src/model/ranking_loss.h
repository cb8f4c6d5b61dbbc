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

/// Returns the LambdaRank loss of one batch. Every pair of programs with different labels adds
/// |change of NDCG when the two swap places| * -log2(sigmoid(better score - worse score)).
/// `labels` are relative throughputs in [0, 1]. `groups` has one number a program: only programs
/// with the same number are compared, each group with its own NDCG. If empty, all are compared.
RankingLoss lambda_rank(std::span<const float> scores,
                        std::span<const float> labels,
                        std::span<const int32_t> groups = {});

/// Returns the pair loss of one batch, a sum over groups of n programs. Every pair with labels
/// y_a > y_b adds (2^4y_a - 2^4y_b) / 4n * -log(sigmoid(s_a - s_b)): pairs of fast programs count
/// more. Every program adds 0.1 * (e - mean of e in the group)², where e = s - 4y; the squares
/// say how far apart the scores should lie.
RankingLoss pair_loss(std::span<const float> scores,
                      std::span<const float> labels,
                      std::span<const int32_t> groups = {});

/// Returns lambda_rank() or pair_loss(), depending on `kind`.
RankingLoss ranking_loss(RankingLossKind kind,
                         std::span<const float> scores,
                         std::span<const float> labels,
                         std::span<const int32_t> groups = {});

}  // namespace pruner
