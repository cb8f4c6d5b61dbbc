#include "ansor/index_pool.h"

#include "golden.h"

namespace pruner::ansor {
namespace {

struct IndexPoolTest : testing::Test {
  IndexPool pool;
  IndexId i = pool.variable(0, 8), j = pool.variable(1, 4);
  IndexSet all(IndexId id, std::vector<int64_t> relaxed) { return relax(pool, id, relaxed); }
};

TEST_F(IndexPoolTest, MakesEqualTreesOnce) {
  EXPECT_EQ(pool.add(i, j), pool.add(i, j));
  EXPECT_NE(pool.add(i, j), pool.add(j, i));
  EXPECT_EQ(pool.add(i, 0), i);
  EXPECT_EQ(pool.mul(i, 1), i);
  EXPECT_TRUE(pool.is_const(pool.mul(i, 0), 0));
  EXPECT_TRUE(pool.is_const(pool.floor_mod(i, 1), 0));
  EXPECT_TRUE(pool.is_const(pool.variable(2, 1), 0));
  EXPECT_TRUE(pool.is_const(pool.floor_div(pool.constant(-1), 4), -1));
  const int before = pool.size();
  for (int n = 0; n < 2000; ++n) pool.add(i, n);
  for (int n = 0; n < 2000; ++n) pool.add(i, n);
  EXPECT_LE(pool.size(), before + 4000);
}

TEST_F(IndexPoolTest, KnowsBoundsAndResidues) {
  const IndexNode n = pool[pool.add(pool.mul(i, 12), pool.mul(j, 8))];
  EXPECT_EQ(n.low, 0);
  EXPECT_EQ(n.high, 84 + 24);
  EXPECT_EQ(n.stride, 4);
  const IndexNode half = pool[pool.floor_div(pool.add(pool.mul(i, 4), 2), 2)];
  EXPECT_EQ(half.stride, 2);
  EXPECT_EQ(half.residue, 1);
  EXPECT_EQ(pool[pool.floor_mod(i, 16)].high, 7);
  EXPECT_EQ(pool[pool.floor_mod(i, 3)].high, 2);
}

TEST_F(IndexPoolTest, GivesLinearForms) {
  const IndexId e = pool.binary(IndexOp::kSub, pool.add(pool.mul(pool.add(i, j), 3), 5), i);
  const LinearIndex linear = pool.linear(e);
  EXPECT_EQ(linear.constant, 5);
  EXPECT_EQ(linear.terms, (std::vector<std::pair<IndexId, int64_t>>{{i, 2}, {j, 3}}));
  EXPECT_EQ(pool.linear(pool.binary(IndexOp::kSub, i, i)), LinearIndex{});
}

TEST_F(IndexPoolTest, RelaxesLoopsToWhatTheyCover) {
  const IndexId e = pool.add(pool.mul(i, 4), j);
  EXPECT_EQ(all(e, {0, 0}), (IndexSet{e, 0}));
  EXPECT_EQ(all(e, {0, 4}), (IndexSet{pool.mul(i, 4), 3}));
  EXPECT_EQ(all(e, {8, 4}), (IndexSet{pool.constant(0), 31}));
  // A row of 4 never leaves its quotient; half a row may.
  EXPECT_EQ(all(pool.floor_div(e, 4), {0, 4}).width, 0);
  EXPECT_EQ(all(pool.floor_mod(e, 4), {0, 4}).width, 3);
  EXPECT_EQ(all(pool.floor_div(pool.add(e, 2), 4), {0, 4}).width, 1);
  EXPECT_EQ(all(pool.floor_mod(pool.add(e, 2), 4), {0, 4}), (IndexSet{pool.constant(0), 3}));
}

TEST_F(IndexPoolTest, CoversTwoSets) {
  EXPECT_EQ(hull(pool, {i, 2}, {i, 5}), (IndexSet{i, 5}));
  EXPECT_EQ(hull(pool, {i, 2}, {pool.add(i, 3), 2}), (IndexSet{i, 5}));
  EXPECT_EQ(hull(pool, {pool.add(i, 3), 2}, {i, 2}), (IndexSet{i, 5}));
  EXPECT_EQ(hull(pool, {i, 0}, {j, 9}), (IndexSet{pool.constant(0), 12}));  // bounds of i and j
}

}  // namespace
}  // namespace pruner::ansor
