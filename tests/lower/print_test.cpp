#include <gtest/gtest.h>

#include "golden.h"
#include "lower/warp_programs.h"

namespace pruner {
namespace {

TEST(PrintProgram, ShowsEveryStatement) {
  ProgramBuilder b("all");
  const TensorId x = b.input("x", {6, 16}), y = b.output("y", {6, 16});
  const TensorId t = b.workspace("t", {6, 16}), acc = b.registers("acc", {16}, 16),
                 row = b.local("row", {16});
  b.program.buffers[static_cast<size_t>(x.value)].pack = {{1, 0}, {{1, 16}}};
  b.program.rewrites = true;
  b.program.body = b.parallel(6, [&](Expr i) {
    return b.let(i * Expr(2), [&](Expr twice) {
      return b.allocate(
          row,
          b.allocate(acc,
                     b.block({b.guard(i < Expr(3), b.store(row, {0}, float_imm(0))),
                              b.vectorize(16,
                                          16,
                                          [&](Expr l) {
                                            return b.store(acc, {l}, b.read(x, {i, l}));
                                          }),
                              b.unroll(2,
                                       [&](Expr u) {
                                         return b.serial(min(twice, 4), [&](Expr k) {
                                           return b.store(t, {k, u}, float_imm(1));
                                         });
                                       }),
                              b.vectorize(16, 16, [&](Expr l) {
                                return b.store(y, {i, l}, b.read(acc, {l}));
                              })})));
    });
  });
  EXPECT_EQ(print(b.program),
            R"(kernel all(float32 x[6, 16] packed [1, 0][1:16], out float32 y[6, 16]) rewrites {
  workspace float32 t[6, 16] at 0;
  parallel for (i0 < 6) {
    let x1 = (i0 * 2);
    local float32 row[16];
    register float32 acc[16] by 16;
    if ((i0 < 3)) {
      row[0] = 0.0;
    }
    vectorize<16> for (i2 < 16) {
      acc[i2] = x[i0, i2];
    }
    unroll for (i3 < 2) {
      for (i4 < min(x1, 4)) {
        t[i4, i3] = 1.0;
      }
    }
    vectorize<16> for (i5 < 16) {
      y[i0, i5] = acc[i5];
    }
  }
}
)");
}

TEST(PrintProgram, ShowsStatementsOfWarps) {
  const WarpMatmul g = {.instruction = find_mma_instruction(
                            "m16n8k16", DType::kFloat16, DType::kFloat16, DType::kFloat32),
                        .m = 16,
                        .n = 8,
                        .k = 16,
                        .warps_m = 1,
                        .warps_n = 1,
                        .frags_m = 1,
                        .frags_n = 1,
                        .steps = 1,
                        .stages = 2,
                        .b_by_rows = true};
  EXPECT_GOLDEN("lower/warp_matmul.txt", print(warp_matmul(g)));
}

}  // namespace
}  // namespace pruner
