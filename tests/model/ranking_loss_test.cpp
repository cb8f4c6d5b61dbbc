#include "model/ranking_loss.h"

#include <gtest/gtest.h>

#include <cmath>

namespace pruner {
namespace {

// The example of the published code, run in PyTorch.
constexpr float kScores[] = {0.3f, -0.2f, 1.1f, 0.7f, 0.05f};
constexpr float kLabels[] = {0.9f, 0.1f, 0.5f, 1.0f, 0.1f};
constexpr float kGradient[] = {-0.1647f, 0.1149f, 0.1511f, -0.2115f, 0.1102f};

TEST(LambdaRank, GivesThePublishedLossAndGradient) {
  const RankingLoss found = lambda_rank(kScores, kLabels);
  EXPECT_NEAR(found.loss, 0.6446491, 1e-6);
  for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(found.gradient[i], kGradient[i], 5e-5) << i;
}

TEST(LambdaRank, HasTheGradientOfItsLoss) {
  // Between scores that keep their order the weights are constant, so the loss is smooth.
  const RankingLoss found = lambda_rank(kScores, kLabels);
  for (size_t i = 0; i < 5; ++i) {
    std::vector<float> above(std::begin(kScores), std::end(kScores)), below = above;
    above[i] += 1e-3f;
    below[i] -= 1e-3f;
    const double slope =
        (lambda_rank(above, kLabels).loss - lambda_rank(below, kLabels).loss) / 2e-3;
    EXPECT_NEAR(found.gradient[i], slope, 1e-3) << i;
  }
}

TEST(LambdaRank, ComparesWithinGroupsOnly) {
  const float scores[] = {0.3f, 0.3f, -0.2f, -0.2f, 1.1f, 1.1f, 0.7f, 0.7f, 0.05f, 0.05f};
  const float labels[] = {0.9f, 0.9f, 0.1f, 0.1f, 0.5f, 0.5f, 1.0f, 1.0f, 0.1f, 0.1f};
  const int32_t groups[] = {7, 8, 7, 8, 7, 8, 7, 8, 7, 8};
  const RankingLoss found = lambda_rank(scores, labels, groups);
  EXPECT_NEAR(found.loss, 2 * 0.6446491, 1e-6);
  for (size_t i = 0; i < 10; ++i) EXPECT_NEAR(found.gradient[i], kGradient[i / 2], 5e-5);
}

TEST(LambdaRank, StaysFiniteWhereItClamps) {
  const float scores[] = {-1e30f, 1e30f, NAN};
  const float labels[] = {1, 0, 0.5f};
  const RankingLoss found = lambda_rank(scores, labels);
  EXPECT_TRUE(std::isfinite(found.loss));
  for (const float g : found.gradient) EXPECT_TRUE(std::isfinite(g));
  EXPECT_EQ(lambda_rank({}, {}).loss, 0);
}

// The expected loss has a weight of (16 - 1) / 8 times log 2, and squares of 2 beside the mean.
TEST(PairLoss, IsThatOfItsPairAndItsSquares) {
  const float scores[] = {0, 0}, labels[] = {1, 0};
  const RankingLoss found = pair_loss(scores, labels);
  EXPECT_NEAR(found.loss, 1.875 * std::log(2) + 0.8, 1e-6);
  EXPECT_NEAR(found.gradient[0], -1.3375, 1e-6);
  EXPECT_NEAR(found.gradient[1], 1.3375, 1e-6);
}

TEST(PairLoss, HasTheGradientOfItsLoss) {
  const int32_t groups[] = {1, 2, 1, 2, 1};
  const RankingLoss found = pair_loss(kScores, kLabels, groups);
  for (size_t i = 0; i < 5; ++i) {
    std::vector<float> above(std::begin(kScores), std::end(kScores)), below = above;
    above[i] += 1e-2f;
    below[i] -= 1e-2f;
    const double slope =
        (pair_loss(above, kLabels, groups).loss - pair_loss(below, kLabels, groups).loss) / 2e-2;
    EXPECT_NEAR(found.gradient[i], slope, 1e-3) << i;
  }
}

TEST(PairLoss, DoesNotMindAConstant) {
  std::vector<float> shifted;
  for (const float score : kScores) shifted.push_back(score + 100);
  EXPECT_NEAR(pair_loss(shifted, kLabels).loss, pair_loss(kScores, kLabels).loss, 1e-3);
  EXPECT_EQ(pair_loss({}, {}).loss, 0);
}

}  // namespace
}  // namespace pruner
