#include "search/history.h"

#include <gtest/gtest.h>

namespace pruner {
namespace {

Candidate candidate(int32_t decision) { return {SketchId{0}, {decision, 1}}; }

TEST(History, KeepsTheFastestFirst) {
  History history;
  EXPECT_EQ(history.best_cost_s(), kWorstCost);
  history.add(candidate(1), 0.3);
  history.add(candidate(2), kWorstCost);
  history.add(candidate(3), 0.1);
  EXPECT_EQ(history.best_cost_s(), 0.1);
  const std::vector<Trial> best = history.best(5);
  ASSERT_EQ(best.size(), 2u) << "failed trials are no elites";
  EXPECT_EQ(best[0].candidate, candidate(3));
  EXPECT_TRUE(history.tried().contains(candidate(2)));
}

TEST(History, TakesTheNewTimeOfACandidateTriedAgain) {
  History history;
  history.add(candidate(1), 0.1);
  history.add(candidate(2), 0.2);
  history.add(candidate(1), 0.3);
  ASSERT_EQ(history.trials().size(), 2u);
  EXPECT_EQ(history.best(1)[0].candidate, candidate(2));
}

}  // namespace
}  // namespace pruner
