#include "ansor/tvm_simplify.h"

#include "golden.h"

namespace pruner::ansor {
namespace {

// x in [0, 8), y in [0, 64), z in [0, 4).
struct TvmSimplify : testing::Test {
  TvmSimplify() {
    simplifier.bind(VarId{0}, {0, 7});
    simplifier.bind(VarId{1}, {0, 63});
    simplifier.bind(VarId{2}, {0, 3});
  }
  std::string operator()(const Expr& e) {
    return print(simplifier.simplify(e), [](TensorId) { return "T"; });
  }
  TvmSimplifier simplifier;
  Expr x = make_var(VarId{0}, "x"), y = make_var(VarId{1}, "y"), z = make_var(VarId{2}, "z");
};

TEST_F(TvmSimplify, OrdersSumsByScale) {
  EXPECT_EQ((*this)(z + y + x * 64), "(((x * 64) + z) + y)");
  EXPECT_EQ((*this)(x * 4 + y - x * 4), "y");
  EXPECT_EQ((*this)(y - 1), "(y - 1)");
  EXPECT_EQ((*this)((x + 3) * 4 + z), "(((x * 4) + z) + 12)");
}

TEST_F(TvmSimplify, SplitsQuotientsAndRemainders) {
  EXPECT_EQ((*this)(floor_div(x * 64 + y, 64)), "x");
  EXPECT_EQ((*this)(floor_mod(x * 64 + y, 64)), "y");
  EXPECT_EQ((*this)(floor_div(x * 64 + y, 16)), "((x * 4) + (y // 16))");
  EXPECT_EQ((*this)(floor_div(y, 8) * 8 + floor_mod(y, 8)), "y");
  EXPECT_EQ((*this)(floor_mod(floor_div(y, 4), 4)), "((y %% 16) // 4)");
  EXPECT_EQ((*this)(floor_mod(floor_mod(y, 32), 8)), "(y %% 8)");
}

TEST_F(TvmSimplify, KeepsWhatFitsUnderARemainderAsOnePart) {
  EXPECT_EQ((*this)(x * 100 + floor_mod(z * 2 + floor_div(y, 32), 8)),
            "((x * 100) + ((z * 2) + (y // 32)))");
}

TEST_F(TvmSimplify, WritesComparisonsWithLess) {
  EXPECT_EQ((*this)(y >= 1), "(1 <= y)");
  EXPECT_EQ((*this)(floor_div(y, 8) >= 1), "(8 <= y)");
  EXPECT_EQ((*this)(x * 8 + 8 < Expr(30)), "(x < 3)");
  EXPECT_EQ((*this)(x < Expr(8)), "true");
  EXPECT_EQ((*this)(x >= 9), "false");
}

TEST_F(TvmSimplify, UsesTheConditionsThatHold) {
  EXPECT_EQ((*this)(x + y < Expr(30)), "((x + y) < 30)");
  simplifier.push_condition(x + y < Expr(20));
  EXPECT_EQ((*this)(x + y < Expr(30)), "true");
  EXPECT_EQ((*this)(floor_div(x + y, 20)), "0");
  simplifier.pop_condition();
  EXPECT_EQ((*this)(x + y < Expr(30)), "((x + y) < 30)");
}

}  // namespace
}  // namespace pruner::ansor
