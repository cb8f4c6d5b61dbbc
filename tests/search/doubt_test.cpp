#include "search/doubt.h"

#include <cmath>

#include "golden.h"

namespace pruner {
namespace {

Candidate candidate(int sketch, std::vector<int32_t> decisions) {
  return {SketchId{sketch}, std::move(decisions)};
}

/// The covariance of what is drawn for two candidates, by many draws.
double covariance(const Doubt& doubt, size_t a, size_t b) {
  Rng rng(3);
  constexpr int kDraws = 4000;
  double sum = 0;
  for (int i = 0; i < kDraws; ++i) {
    const std::vector<double> drawn = doubt.draw(rng);
    sum += drawn[a] * drawn[b];
  }
  return sum / kDraws;
}

const std::vector<Candidate> kSome = {candidate(0, {1, 1, 1, 1}),
                                      candidate(0, {1, 1, 1, 2}),
                                      candidate(0, {2, 2, 2, 2}),
                                      candidate(1, {1, 1, 1, 1})};

TEST(Doubt, IsAlikeWhereSchedulesAre) {
  const Doubt doubt(kSome, {});
  const double variance = covariance(doubt, 0, 0);
  EXPECT_NEAR(std::sqrt(variance), 0.22, 0.02);
  EXPECT_GT(covariance(doubt, 0, 1), 0.6 * variance);
  EXPECT_LT(covariance(doubt, 0, 2), covariance(doubt, 0, 1) - 0.1 * variance);
  EXPECT_NEAR(covariance(doubt, 0, 3), 0, 0.1 * variance);
}

TEST(Doubt, IsSmallNearWhatWasMeasured) {
  History history;
  history.add(candidate(0, {1, 1, 1, 3}), 1e-3);
  history.add(candidate(0, {9, 9, 9, 9}), kWorstCost);  // failed: it says nothing of times
  const Doubt before(kSome, {}), after(kSome, history);
  EXPECT_LT(covariance(after, 0, 0), 0.75 * covariance(before, 0, 0));
  EXPECT_GT(covariance(after, 2, 2), covariance(after, 0, 0));
  EXPECT_NEAR(covariance(after, 3, 3), covariance(before, 3, 3), 0.005);
}

TEST(Doubt, DrawsTheSameForOneSeed) {
  const Doubt doubt(kSome, {});
  Rng a(1), b(1);
  EXPECT_EQ(doubt.draw(a), doubt.draw(b));
  EXPECT_EQ(Doubt({}, {}).draw(a), std::vector<double>());
}

}  // namespace
}  // namespace pruner
