#include "space/carry_over.h"

#include <gtest/gtest.h>

#include "space/operator_task.h"

namespace pruner {
namespace {

TEST(CarryOver, KeepsEveryDecisionWhereTilesFit) {
  const Space from = make_space(operator_task("matmul 96 64 48"));
  Rng rng(3);
  int carried = 0;
  for (int i = 0; i < 50; ++i) {
    const Candidate candidate = sample(from, rng);
    Space to = make_space(operator_task("matmul 97 64 48"));
    to.any_tiles = true;
    const std::optional<Candidate> there = carry_over(from, candidate, to);
    ASSERT_TRUE(there) << print(from, candidate);
    EXPECT_EQ(print(to, *there), print(from, candidate)) << "at an extent that no tile divides";
    EXPECT_TRUE(is_legal(to, *there));
    ++carried;
  }
  EXPECT_EQ(carried, 50);
}

TEST(CarryOver, FindsNoPlaceForTilesLongerThanTheirAxis) {
  const Space from = make_space(operator_task("matmul 96 64 48"));
  const SketchId sketch{0};
  Candidate candidate{sketch, {}};
  for (const Decision& decision : from[sketch].decisions)
    candidate.decisions.push_back(decision.choices.front());
  for (size_t d = 0; d < candidate.decisions.size(); ++d)
    if (from[sketch].decisions[d].name.ends_with(".i.rows")) candidate.decisions[d] = 8;
  ASSERT_TRUE(is_legal(from, candidate)) << print(from, candidate);
  Space to = make_space(operator_task("matmul 7 64 48"));
  to.any_tiles = true;
  EXPECT_FALSE(carry_over(from, candidate, to));
}

TEST(NearestLike, IsLegalAtAnyExtent) {
  const Space from = make_space(operator_task("matmul 96 64 48"));
  Rng rng(4);
  for (const int rows : {1, 2, 7, 17, 512}) {
    const Space to = make_space(operator_task("matmul " + std::to_string(rows) + " 64 48"));
    for (int i = 0; i < 20; ++i) {
      const Candidate candidate = sample(from, rng);
      const std::optional<Candidate> near = nearest_like(from, candidate, to);
      ASSERT_TRUE(near) << rows << ": " << print(from, candidate);
      EXPECT_TRUE(is_legal(to, *near)) << rows;
      EXPECT_EQ(to[near->sketch].name, from[candidate.sketch].name);
    }
  }
}

}  // namespace
}  // namespace pruner
