#include "tensor/affine.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/check.h"
#include "support/rng.h"

namespace pruner {
namespace {

constexpr const char* kNames[] = {"i", "j", "k", "l"};
Expr var(int id) { return make_var(VarId{id}, kNames[id]); }
const Expr i = var(0), j = var(1), k = var(2);
const std::vector<Range> kRanges = {{0, 6}, {0, 31}, {0, 3}, {-5, 100}};

std::string text(const Expr& e) {
  return print(e, [](TensorId id) { return "t" + std::to_string(id.value); });
}
std::string simple(const Expr& e) { return text(simplify(e, kRanges)); }

TEST(Affine, CollectsTermsByVariable) {
  const std::optional<Affine> a = to_affine((j * 4 + i) * 3 - i * 3 + 7);
  ASSERT_TRUE(a);
  EXPECT_EQ(*a, (Affine{{{VarId{1}, 12}}, 7}));
  EXPECT_EQ(a->coefficient(VarId{1}), 12);
  EXPECT_EQ(a->coefficient(VarId{0}), 0);
  EXPECT_EQ(text(to_expr(*a, [](VarId id) { return kNames[id.value]; })), text(j * 12 + 7));
}

TEST(Affine, RefusesWhatIsNoSum) {
  EXPECT_FALSE(to_affine(i * j));
  EXPECT_FALSE(to_affine(floor_div(i, 2)));
  EXPECT_FALSE(to_affine(load(TensorId{0}, {i}, DType::kInt64)));
  EXPECT_FALSE(to_affine(float_imm(1)));
}

TEST(Simplify, SplitsDivisionsByTheRanges) {
  EXPECT_EQ(simple(floor_div(i * 32 + j, 32)), "i");
  EXPECT_EQ(simple(floor_mod(i * 32 + j, 32)), "j");
  EXPECT_EQ(simple(floor_div(i * 32 + j, 16)), text(i * 2 + floor_div(j, 16)));
  EXPECT_EQ(simple(floor_mod(i * 32 + j, 64)), text(j + floor_mod(i, 2) * 32));
  EXPECT_EQ(simple(floor_div(i * 32 + j, 64)), text(floor_div(i, 2)));
  EXPECT_EQ(simple(floor_div(i * 4 + k + 64, 4)), text(i + 16));
  EXPECT_EQ(simple(floor_div(k - 4, 4)), "-1");
  EXPECT_EQ(simple(floor_div(floor_div(j, 2), 4)), text(floor_div(j, 8)));
}

TEST(Simplify, JoinsQuotientAndRemainder) {
  EXPECT_EQ(simple(floor_div(j, 7) * 7 + floor_mod(j, 7)), "j");
  EXPECT_EQ(simple(floor_div(j, 7) * 14 + floor_mod(j, 7) * 2 + i), text(i + j * 2));
}

TEST(Simplify, DecidesByBounds) {
  EXPECT_EQ(simple(i < Expr(7)), simple(int_imm(1, DType::kBool)));
  EXPECT_EQ(simple(min(i, 6)), "i");
  EXPECT_EQ(simple(max(i - 6, 0)), "0");
  EXPECT_EQ(simple(min(i, 5)), text(min(i, 5)));
  EXPECT_EQ(simple(select(i >= Expr(0) && i < Expr(6), i, 0)), text(select(i < Expr(6), i, 0)));
  EXPECT_EQ(simple(load(TensorId{0}, {floor_div(i * 32 + j, 32), k - k}, DType::kFloat32)),
            text(load(TensorId{0}, {i, 0}, DType::kFloat32)));
}

TEST(Bounds, KnowsWhatCancelsInsideAMinimum) {
  // The width of a tile that may be cut off at 56.
  const std::vector<Range> two_tiles = {{0, 1}};
  const Expr width = min(i * 32 + 32, 56) - i * 32;
  EXPECT_EQ(bounds(width, two_tiles), (Range{24, 32}));
  EXPECT_EQ(bounds(i * 32 - max(i * 32 - 5, 3), two_tiles), (Range{-3, 5}));
  EXPECT_EQ(text(simplify(min(width, 40), two_tiles)), text(simplify(width, two_tiles)));
}

TEST(Simplify, KeepsUnboundedVariables) {
  EXPECT_EQ(text(simplify(floor_div(i * 32 + j, 32), {})), text(i + floor_div(j, 32)));
}

int64_t evaluate(const Expr& e, const std::vector<int64_t>& at) {
  std::vector<Expr> values(at.begin(), at.end());
  const Expr folded = substitute(e, values);
  const int64_t* value = as_int(folded);
  CHECK(value) << text(folded);
  return *value;
}

Expr random_index(Rng& rng, int depth) {
  const auto constant = [&] { return Expr(int64_t{1} << rng.below(7)); };
  if (depth == 0) return rng.below(4) == 0 ? Expr(rng.below(40) - 20) : var(rng.below(3));
  const Expr a = random_index(rng, depth - 1), b = random_index(rng, depth - 1);
  switch (rng.below(9)) {
    case 0: return a + b;
    case 1: return a - b;
    case 2: return a * constant() + b;
    case 3: return floor_div(a, constant());
    case 4: return floor_mod(a, Expr(rng.below(9) + 1));
    case 5: return floor_div(a * Expr(12) + b, Expr(rng.below(24) + 1));
    case 6: return min(a, b);
    case 7: return max(a, b);
    default: return select(a < b, b, a);
  }
}

// A simplified expression has the same value everywhere, and lies within its bounds.
TEST(Simplify, KeepsTheValueOfRandomExpressions) {
  Rng rng(7);
  for (int round = 0; round < 2000; ++round) {
    const Expr e = random_index(rng, 1 + round % 4);
    const Expr s = simplify(e, kRanges);
    const Range range = bounds(e, kRanges);
    for (int sample = 0; sample < 12; ++sample) {
      std::vector<int64_t> at;
      for (const Range& r : kRanges) at.push_back(r.first + rng.below(r.second - r.first + 1));
      const int64_t value = evaluate(e, at);
      ASSERT_EQ(evaluate(s, at), value) << text(e) << " became " << text(s);
      ASSERT_GE(value, range.first) << text(e);
      ASSERT_LE(value, range.second) << text(e);
    }
  }
}

TEST(Bounds, HaveOfAnXorTheBitsOfBoth) {
  EXPECT_EQ(bounds(i ^ j, kRanges), (Range{0, 31}));
  EXPECT_EQ(bounds(k ^ Expr(4), kRanges), (Range{0, 7}));
  EXPECT_EQ(bounds(i ^ var(3), kRanges), kUnbounded);
  EXPECT_EQ(simple(floor_div(k ^ Expr(1), Expr(4))), "0");
  EXPECT_EQ(*as_int(Expr(6) ^ Expr(3)), 5);
  EXPECT_TRUE((i ^ Expr(0)).same_as(i));
}

TEST(IsMultiple, IsSeenByTheForm) {
  const std::vector<Expr> lets = {Expr(), k * 8};
  const auto of = [&](const Expr& e, int64_t divisor) { return is_multiple(e, divisor, lets); };
  EXPECT_TRUE(of(i * 6 + 9, 3));
  EXPECT_FALSE(of(i * 6 + 9, 2));
  EXPECT_TRUE(of(j + 16, 8)) << "a let";
  EXPECT_FALSE(of(i, 2));
  EXPECT_TRUE(of(floor_mod(i * 4, Expr(12)), 4));
  EXPECT_FALSE(of(floor_mod(i * 4, Expr(10)), 4));
  EXPECT_TRUE(of((i * 8) ^ (k * 16), 8));
  EXPECT_FALSE(of((i * 3) ^ (k * 3), 3)) << "4 and 7 are none, 3 and 6 are";
  EXPECT_TRUE(of(select(i < Expr(2), j, Expr(24)), 8));
  EXPECT_FALSE(of(select(i < Expr(2), j, Expr(4)), 8));
}

}  // namespace
}  // namespace pruner
