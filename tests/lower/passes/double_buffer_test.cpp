#include "lower/passes/pass_programs.h"
#include "lower/rewrite.h"
#include "lower/warp_programs.h"

namespace pruner {
namespace {

// y[t] is the sum of x[chunk, 3 - t] over three chunks, which the threads fetch together.
Program chunks() {
  ProgramBuilder b("k");
  const TensorId x = b.input("x", {3, 4}), y = b.output("y", {4});
  const TensorId sum = b.local("sum", {1}), part = b.shared("part", {4});
  const auto of_thread = [&](Expr t) {
    const auto in_chunk = [&](Expr chunk) {
      return b.let(chunk, [&](Expr k) {
        return b.block({b.store(part, {t}, b.read(x, {k, t})),
                        b.barrier(),
                        b.add(sum, {0}, b.read(part, {Expr(3) - t})),
                        b.barrier()});
      });
    };
    For loop = std::get<For>(b.serial(3, in_chunk)->op);
    loop.double_buffer = true;
    return b.allocate(sum,
                      b.block({b.store(sum, {0}, float_imm(0)),
                               make_stmt(std::move(loop)),
                               b.store(y, {t}, b.read(sum, {0}))}));
  };
  b.program.body = b.blocks(1, [&](Expr) { return b.allocate(part, b.threads(4, of_thread)); });
  return b.program;
}

TEST(DoubleBuffer, FetchesTheNextChunkBesideTheSums) {
  const Program before = chunks();
  const Program after = double_buffer(before);
  expect_same_results(before, after);
  EXPECT_EQ(print(after), R"(kernel k(float32 x[3, 4], out float32 y[4]) {
  block for (i0 < 1) {
    shared float32 part[2, 4];
    thread for (i1 < 4) {
      local float32 sum[1];
      sum[0] = 0.0;
      let x3 = 0;
      part[0, i1] = x[x3, i1];
      for (i2 < 3) {
        barrier;
        if ((i2 < 2)) {
          let next4 = (i2 + 1);
          let x3 = next4;
          part[(next4 %% 2), i1] = x[x3, i1];
        }
        let x3 = i2;
        sum[0] = (sum[0] + part[(i2 %% 2), (3 - i1)]);
      }
      y[i1] = sum[0];
    }
  }
}
)");
}

TEST(DoubleBuffer, KeepsWhatCandidatesCompute) {
  for (const char* op : {"matmul 20 28 96", "conv2d 1 8 8 12 40 3 3 padding=1 +bias"})
    EXPECT_GT(changed_by("double_buffer", gpu_task(op), 24).size(), 4) << op;
}

TEST(DoubleBuffer, ReachesLoadsOfMatrices) {
  const WarpMatmul g = {.instruction = find_mma_instruction(
                            "m16n8k8", DType::kFloat16, DType::kFloat16, DType::kFloat32),
                        .stages = 0};
  Program program = warp_matmul(g);
  int noted = 0;
  program.body = rewrite(program.body, [&](const Stmt& s) {
    const For* loop = std::get_if<For>(&s->op);
    if (loop == nullptr || !std::holds_alternative<Let>(loop->body->op)) return Stmt();
    if (loop->kind != LoopKind::kSerial) return Stmt();
    ++noted;
    For chunks = *loop;
    chunks.double_buffer = true;
    return make_stmt(std::move(chunks));
  });
  ASSERT_EQ(noted, 1);
  program = double_buffer(program);
  const Result<Unit> valid = verify(program);
  ASSERT_TRUE(valid.ok()) << valid.error().message();
  std::vector<Tensor> args = warp_arguments(program);
  const Result<Unit> ran = interpret(program, args, {.unwritten = true});
  ASSERT_TRUE(ran.ok()) << ran.error().message();
  expect_product(g, args);
}

}  // namespace
}  // namespace pruner
