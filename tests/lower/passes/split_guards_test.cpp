#include "lower/passes/pass_programs.h"
#include "lower/program_builder.h"

namespace pruner {
namespace {

// y[t] is the sum of the three elements of x around t, of eight; beyond the ends stands 0.
Program windows(bool guards) {
  ProgramBuilder b("k");
  const TensorId x = b.input("x", {8}), y = b.output("y", {8});
  const TensorId sum = b.registers("sum", {1}, 1);
  b.program.body = b.serial(8, [&](Expr t) {
    const Stmt add = b.serial(3, [&](Expr k) {
      const Expr at = t + k - Expr(1);
      const Expr within = at >= Expr(0) && at < Expr(8), clamped = max(min(at, 7), 0);
      const Expr value = guards ? select(within, b.read(x, {at}), float_imm(0))
                                : select(within, b.read(x, {clamped}) * float_imm(1), float_imm(0));
      return b.add(sum, {0}, value);
    });
    return b.allocate(
        sum, b.block({b.store(sum, {0}, float_imm(0)), add, b.store(y, {t}, b.read(sum, {0}))}));
  });
  b.program.ranges = {{0, 7}, {0, 2}};
  return b.program;
}

TEST(SplitGuards, GivesTilesInsideCodeOfTheirOwn) {
  const Program before = windows(true), after = split_guards(before);
  expect_same_results(before, after);
  EXPECT_EQ(print(after), R"(kernel k(float32 x[8], out float32 y[8]) {
  for (i0 < 8) {
    register float32 sum[1];
    sum[0] = 0.0;
    if ((((i0 - 1) >= 0) && ((i0 - 7) < 0))) {
      for (i1 < 3) {
        sum[0] = (sum[0] + x[((i0 + i1) - 1)]);
      }
    }
    if (!(((i0 - 1) >= 0) && ((i0 - 7) < 0))) {
      for (i1 < 3) {
        sum[0] = (sum[0] + tir.if_then_else(((((i0 + i1) - 1) >= 0) && (((i0 + i1) - 1) < 8)), x[((i0 + i1) - 1)], 0.0));
      }
    }
    y[i0] = sum[0];
  }
}
)");
}

TEST(SplitGuards, LeavesChoicesThatAreNoGuards) {
  const Program before = windows(false);
  EXPECT_EQ(split_guards(before).body, before.body);
}

TEST(SplitGuards, KeepsWhatCandidatesCompute) {
  for (const char* op :
       {"depthwise_conv2d 1 16 7 7 5 5 stride=2 padding=2", "max_pool2d 1 16 9 9 3 3 padding=1"})
    EXPECT_GT(changed_by("split_guards", operator_task(op), 20).size(), 4) << op;
}

}  // namespace
}  // namespace pruner
