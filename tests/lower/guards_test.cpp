#include "lower/guards.h"

#include <gtest/gtest.h>

#include "lower/lower.h"
#include "space/operator_task.h"
#include "tensor/affine.h"

namespace pruner {
namespace {

constexpr TensorId kData{0}, kOther{1};

Expr iterator(int v) { return make_var(VarId{v}, "i" + std::to_string(v)); }

Expr ge(const Expr& a, int64_t b) { return a >= Expr(b); }
Expr lt(const Expr& a, int64_t b) { return a < Expr(b); }

// x[place] where `condition` holds, 0 elsewhere.
Expr guarded(const Expr& condition, const Expr& place) {
  return select(condition, load(kData, {place}, DType::kFloat32), float_imm(0));
}

std::string text(const Expr& e) {
  return print(e, [](TensorId id) { return id == kData ? "x" : "other"; });
}

int64_t value_at(const Expr& e, int64_t y, int64_t x) {
  const Expr value = simplify(substitute(e, {Expr(y), Expr(x)}), {});
  EXPECT_NE(as_int(value), nullptr) << text(value);
  return as_int(value) == nullptr ? -1 : *as_int(value);
}

// Returns what guards_hold() says of the box of `spans` from (y, x) on.
Expr holds(const Expr& body, int64_t y, int64_t x, const std::vector<int64_t>& spans) {
  return guards_hold(body, {{VarId{0}, {y, y + spans[0]}}, {VarId{1}, {x, x + spans[1]}}});
}

// Both of a body's guards, written out beside it.
struct Guarded {
  Expr body, condition;
};

TEST(GuardsHold, ExactlyWhereAllGuardsHoldInTheWholeBox) {
  const Expr y = iterator(0), x = iterator(1);
  const Expr inside = ge(y, 1) && lt(y, 6) && ge(x + y, 3) && lt(x, 5);
  const Expr strict =
      binary(BinaryOp::kGt, y * Expr(2), x) && binary(BinaryOp::kLe, x * Expr(3) - y, Expr(9));
  const Guarded cases[] = {
      {guarded(inside, y), inside},
      {guarded(strict, x), strict},
      {guarded(inside, y) * float_imm(2) + guarded(strict, x), inside && strict},
      {guarded(lt(Expr(8) - x, 7), x), lt(Expr(8) - x, 7)},
      {select(inside, guarded(strict, x), float_imm(0)), inside && strict},
      {select(inside, select(strict, guarded(ge(x, 0), x), float_imm(1)), float_imm(0)),
       inside && strict && ge(x, 0)},
  };
  for (const Guarded& c : cases) {
    int hold = 0, fail = 0;
    for (const std::vector<int64_t>& spans :
         {std::vector<int64_t>{0, 0}, {2, 0}, {0, 3}, {1, 1}, {2, 4}}) {
      for (int64_t y0 = -2; y0 < 9; ++y0) {
        for (int64_t x0 = -2; x0 < 9; ++x0) {
          bool all = true;
          for (int64_t dy = 0; dy <= spans[0]; ++dy)
            for (int64_t dx = 0; dx <= spans[1]; ++dx)
              all = all && value_at(c.condition, y0 + dy, x0 + dx) != 0;
          const Expr found = holds(c.body, y0, x0, spans);
          ASSERT_TRUE(found) << text(c.body);
          EXPECT_EQ(value_at(found, 0, 0) != 0, all) << text(c.body) << " from " << y0 << ", " << x0
                                                     << " over " << spans[0] << ", " << spans[1];
          ++(all ? hold : fail);
        }
      }
    }
    EXPECT_GT(std::min(hold, fail), 10) << text(c.body);
  }
}

TEST(GuardsHold, IsEmptyWhereNothingIsKnown) {
  const Expr y = iterator(0), x = iterator(1);
  const Expr element = load(kOther, {y, x}, DType::kFloat32);
  const Expr even = binary(BinaryOp::kEq, floor_mod(y, Expr(2)), Expr(0));
  const Expr quotient = lt(floor_div(x * y, Expr(3)), 2);
  const Expr unknown[] = {
      element,                                                 // no guard
      select(lt(y, 3), element * float_imm(2), float_imm(0)),  // no guard: not a bare load
      select(lt(y, 3), element, load(kData, {x}, DType::kFloat32)),
      guarded(even, x),
      guarded(quotient, x),
      guarded(lt(y, 3) && even, x),
      guarded(even && lt(y, 3), x),
      guarded(binary(BinaryOp::kOr, lt(y, 3), lt(x, 3)), x),
      select(element < float_imm(3), element, float_imm(0)),
      guarded(lt(y, 3), y) + guarded(even, x),
      guarded(even, x) + guarded(lt(y, 3), y),
      select(even, guarded(lt(y, 3), y), float_imm(0)),
      select(lt(y, 3), guarded(even, y), float_imm(0)),
  };
  for (const Expr& body : unknown) EXPECT_FALSE(holds(body, 0, 0, {1, 1})) << text(body);
}

TEST(WithoutGuards, LeavesTheLoadsAndEverythingElse) {
  const Expr y = iterator(0), x = iterator(1);
  const Expr element = load(kOther, {y, x}, DType::kFloat32);
  const Expr chosen = select(lt(x, 2), element, element * float_imm(2));
  const Expr body = guarded(ge(y, 1) && lt(y, 6), y) * chosen + guarded(lt(x, 3), x);
  const Expr bare = load(kData, {y}, DType::kFloat32) * chosen + load(kData, {x}, DType::kFloat32);
  EXPECT_EQ(text(without_guards(body)), text(bare));
  EXPECT_EQ(text(without_guards(chosen)), text(chosen));
  const Expr nested = select(ge(x, 1), guarded(lt(x, 3), x), float_imm(0));
  EXPECT_EQ(text(without_guards(nested)), text(load(kData, {x}, DType::kFloat32)));
  // The outer select is no guard: what it chooses between is computed.
  const Expr outer = select(ge(x, 1), guarded(lt(x, 3), x) * float_imm(2), float_imm(0));
  EXPECT_EQ(text(without_guards(outer)),
            text(select(ge(x, 1), load(kData, {x}, DType::kFloat32) * float_imm(2), float_imm(0))));
}

// Tiles in the middle run without a choice, those at the border with one for each load.
TEST(GuardsHold, GivesAPaddedWindowTwoKindsOfCode) {
  const std::string choice = "tir.if_then_else(";
  for (const char* op :
       {"depthwise_conv2d 1 16 12 12 3 3 padding=1", "max_pool2d 1 16 12 12 3 3 padding=1"}) {
    const Space space = make_space(operator_task(op));
    Rng rng(3);
    int divided = 0;
    for (int i = 0; i < 30; ++i) {
      const Result<Program> program = lower(space, sample(space, rng), "k");
      ASSERT_TRUE(program.ok()) << program.error().message();
      const std::string code = print(*program);
      const size_t middle = code.find("if ("), border = code.find("if (!(");
      if (border == std::string::npos) continue;  // a tile of which no place is inside
      ++divided;
      ASSERT_LT(middle, border);
      EXPECT_GT(code.find(choice), border) << code;
      EXPECT_NE(code.find(choice), std::string::npos) << code;
    }
    EXPECT_GT(divided, 10) << op;
  }
  // Without padding there is nothing to guard.
  const Space space = make_space(operator_task("depthwise_conv2d 1 16 12 12 3 3"));
  Rng rng(4);
  const Result<Program> program = lower(space, sample(space, rng), "k");
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(print(*program).find("if "), std::string::npos);
}

}  // namespace
}  // namespace pruner
