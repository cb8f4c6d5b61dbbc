#include "search/best_seen.h"

#include <gtest/gtest.h>

namespace pruner {
namespace {

Candidate number(int32_t n) { return {SketchId{0}, {n}}; }

TEST(BestSeen, HoldsTheBestOnceBestFirstWithoutTheMeasured) {
  const CandidateSet measured = {number(9)};
  BestSeen best(3, measured);
  for (const int32_t n : {1, 5, 3, 5, 9, 2, 4}) best.add(number(n), static_cast<float>(n));
  std::vector<int32_t> held;
  for (const Scored& scored : best.take()) held.push_back(scored.candidate.decisions[0]);
  EXPECT_EQ(held, (std::vector<int32_t>{5, 4, 3}));
}

}  // namespace
}  // namespace pruner
