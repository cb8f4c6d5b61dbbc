#include "lower/passes/pass_programs.h"
#include "lower/program_builder.h"

namespace pruner {
namespace {

// y[0] is the sum of x[k, j] over `rows` of four; both loops may be unrolled up to `steps`.
Program sum(int64_t rows, int64_t steps) {
  ProgramBuilder b("k");
  const TensorId x = b.input("x", {rows, 4}), y = b.output("y", {1});
  const auto noted = [&](int64_t extent, const ProgramBuilder::Body& body) {
    For loop = std::get<For>(b.serial(extent, body)->op);
    b.program.ranges[static_cast<size_t>(loop.var.value)] = {0, extent - 1};
    loop.unroll = steps;
    return make_stmt(std::move(loop));
  };
  const Stmt add = noted(rows, [&](Expr k) {
    return noted(4, [&](Expr j) { return b.add(y, {0}, b.read(x, {k, j})); });
  });
  b.program.body = b.block({b.store(y, {0}, float_imm(0)), add});
  return b.program;
}

std::string unrolled(int64_t rows, int64_t steps) {
  const Program before = sum(rows, steps), after = unroll(before);
  expect_same_results(before, after);
  const std::string text = print(after);
  return text.substr(text.find("0.0;\n") + 5);
}

TEST(Unroll, IsWholeWhereAllStepsFit) {
  EXPECT_EQ(unrolled(3, 12), R"(  unroll for (i0 < 3) {
    unroll for (i1 < 4) {
      y[0] = (y[0] + x[i0, i1]);
    }
  }
}
)");
}

TEST(Unroll, IsOfTheInnermostLoopWhereMoreDoNotFit) {
  EXPECT_NE(unrolled(3, 4).find("  for (i0 < 3) {\n    unroll for (i1 < 4) {"), std::string::npos);
  EXPECT_EQ(unrolled(3, 1).find("unroll"), std::string::npos);
}

TEST(Unroll, TakesAPartAndLeavesARest) {
  EXPECT_EQ(unrolled(11, 12), R"(  for (i0_outer2 < 3) {
    unroll for (i0_inner3 < 3) {
      unroll for (i1 < 4) {
        y[0] = (y[0] + x[((i0_outer2 * 3) + i0_inner3), i1]);
      }
    }
  }
  for (i0_rest4 < 2) {
    unroll for (i1 < 4) {
      y[0] = (y[0] + x[(i0_rest4 + 9), i1]);
    }
  }
}
)");
  // Without a rest where a factor divides the extent.
  EXPECT_EQ(unrolled(12, 12).find("rest"), std::string::npos);
}

TEST(Unroll, KeepsWhatCandidatesCompute) {
  for (const char* op : {"matmul 7 13 100", "conv2d 1 20 7 9 33 3 3 +relu"}) {
    EXPECT_GT(changed_by("unroll", operator_task(op), 10).size(), 4) << op;
    EXPECT_GT(changed_by("unroll", gpu_task(op), 20).size(), 4) << op;
  }
}

}  // namespace
}  // namespace pruner
