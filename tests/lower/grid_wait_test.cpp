// Launches that begin before those before them have ended.
#include <gtest/gtest.h>

#include "golden.h"
#include "lower/lower.h"
#include "lower/meaning.h"
#include "lower/program_builder.h"
#include "lower/rewrite.h"
#include "lower/warp_rules.h"
#include "space/gpu/warp_space.h"

namespace pruner {
namespace {

Task task_on(const char* arch, const char* op) {
  return operator_task(op, *parse_target(std::string("cuda --arch=") + arch, 0));
}

Program lowered(const Space& space, uint64_t seed = 1) {
  Rng rng(seed);
  const Result<Program> program = lower(space, sample(space, rng), "k");
  EXPECT_TRUE(program.ok()) << program.error().message();
  return *program;
}

TEST(GridWait, StandsInEachLaunchOfDevicesThatCan) {
  for (const char* op : {"relu 6 64",
                         "softmax 7 256",
                         "matmul 33 49 100 +bias",
                         "dense 40 40 2048 bits=16 +bias",
                         "conv2d 1 8 7 9 8 3 3 padding=1",
                         "attention 1 3 48 64 32 bits=16"}) {
    SCOPED_TRACE(op);
    for (const char* arch : {"sm_80", "sm_90"}) {
      const Task task = task_on(arch, op);
      const Space space = make_space(task);
      for (uint64_t seed = 0; seed < 8; ++seed) {
        const Program program = lowered(space, seed);
        for (const For* launch : launches(program))
          EXPECT_EQ(waits_for_grid(launch->body), std::string_view(arch) == "sm_90");
      }
    }
  }
}

// Copies of weights come before the wait, all others after.
TEST(GridWait, LetsCopiesOfConstantsComeBefore) {
  for (const char* structure : {"m16n8k16-tile", "m64n8k16-tile"}) {
    Task task = task_on("sm_90", "dense 64 48 320 bits=16");
    const StageId weights = task.dag.inputs()[1];
    task.dag[weights].constant = true;
    task = make_task(task.dag, task.target, "dense");
    const Space space = warp_space(task, structure);
    Rng rng(5);
    const Meaning meaning(task.dag, rng);
    const Program program = lowered(space);
    meaning.check(program, structure);
    bool waited = false;
    int before = 0, after = 0;
    walk(program.body, [&](const StmtNode& s) {
      waited = waited || std::holds_alternative<GridWait>(s.op);
      const AsyncCopy* copy = std::get_if<AsyncCopy>(&s.op);
      if (copy == nullptr) return;
      EXPECT_TRUE(waited || program[copy->from.buffer].constant);
      ++(waited ? after : before);
    });
    EXPECT_GT(before, 0);
    EXPECT_GT(after, 0);
  }
}

class GridWaitRules : public testing::Test {
 protected:
  Result<Unit> check(const ProgramBuilder::Body& body, bool constant = false) {
    b.program.body = b.blocks(2, [&](Expr) { return b.threads(32, body); });
    b.program.buffers[static_cast<size_t>(x.value)].constant = constant;
    return verify(b.program);
  }
  Stmt copy(Expr t) { return b.store(y, {t}, b.read(x, {t})); }
  static Stmt wait() { return make_stmt(GridWait{}); }

  ProgramBuilder b{"p"};
  TensorId x = b.input("x", {32}), y = b.output("y", {32}), held = b.registers("held", {1}, 1);
};

TEST_F(GridWaitRules, ComesBeforeWhatOthersWrite) {
  EXPECT_TRUE(check([&](Expr t) { return b.block({wait(), copy(t)}); }).ok());
  EXPECT_TRUE(check([&](Expr t) { return copy(t); }).ok()) << "it begins when all before has ended";
  const char* const early = "is touched before its launch waits for the ones before it";
  EXPECT_ERROR(check(
                   [&](Expr t) {
                     return b.block({copy(t), wait()});
                   },
                   true),
               std::string("y ") + early);
  const auto reads_first = [&](Expr t) {
    return b.allocate(
        held,
        b.block({b.store(held, {0}, b.read(x, {t})), wait(), b.store(y, {t}, b.read(held, {0}))}));
  };
  EXPECT_TRUE(check(reads_first, true).ok());
  EXPECT_ERROR(check(reads_first), std::string("x ") + early);
  // The interpreter finds it, too.
  std::vector<Tensor> args = {Tensor(DType::kFloat32, {32}), Tensor(DType::kFloat32, {32})};
  EXPECT_ERROR(interpret(b.program, args), "x is touched before the launch has waited");
}

TEST_F(GridWaitRules, StandsWhereAllComeByOnce) {
  const char* const divided = "a wait for other launches stands where not all threads come by once";
  EXPECT_ERROR(check([&](Expr t) { return b.guard(t < Expr(8), wait()); }), divided);
  EXPECT_ERROR(check([&](Expr) { return b.serial(2, [&](Expr) { return wait(); }); }), divided);
  EXPECT_ERROR(check([&](Expr) { return b.block({wait(), wait()}); }), "stands behind another one");
}

}  // namespace
}  // namespace pruner
