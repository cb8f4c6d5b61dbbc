#include "space/carry_over.h"

#include <gtest/gtest.h>

#include "space/operator_task.h"
#include "tensor/formula.h"

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

// Tiles are as few as the factors allow, at least two, reach the end and do little twice.
TEST(EvenIterations, CoverAnyExtentWithLittleLeftOver) {
  for (const std::vector<int64_t>& factors : {std::vector<int64_t>{6}, {2, 3}, {5, 4}, {26}}) {
    for (const bool whole : {false, true}) {
      const OpenTile tile{.stage = StageId{0}, .unit = 8, .whole = whole, .factors = factors};
      int64_t most = 8;
      for (const int64_t factor : factors) most *= factor;
      for (int64_t n = 64; n <= 700; ++n) {
        int64_t held = tile.unit;
        const std::vector<int64_t> iterations = even_iterations(tile, n);
        for (size_t l = 0; l < factors.size(); ++l) {
          held *= iterations[l];
          EXPECT_TRUE(whole || iterations[l] <= factors[l]) << n;
        }
        const int64_t tiles = (n + held - 1) / held;
        EXPECT_LE(held, n) << n;
        EXPECT_GE(tiles, 2) << n;
        EXPECT_TRUE(!whole || tiles == 2) << n;
        if (factors.size() == 1 && !whole) {
          EXPECT_EQ(tiles, std::max<int64_t>(2, (n + most - 1) / most)) << n;
          EXPECT_LT(tiles * held, n + 8 * (tiles + 1)) << n << ": a unit a tile";
        }
      }
    }
  }
}

TEST(EvenIterations, AreTheSameAsFormulas) {
  const OpenTile tile{.stage = StageId{0}, .unit = 6, .factors = {3, 4}};
  const std::vector<Expr> formulas = even_iterations(tile, make_var(VarId{0}, "n") * Expr(2));
  for (int64_t n = 1; n <= 300; ++n) {
    const std::vector<int64_t> iterations = even_iterations(tile, 2 * n);
    for (size_t l = 0; l < iterations.size(); ++l)
      EXPECT_EQ(evaluate_formula(formulas[l], SymbolValues{n}), iterations[l]) << n;
  }
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
