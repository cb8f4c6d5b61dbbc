// The interpreter on products of groups of warps: what a lowering makes is right; with a statement
// left out or changed it is an error that says what is wrong.
#include <gtest/gtest.h>

#include "golden.h"
#include "lower/lower.h"
#include "lower/rewrite.h"
#include "space/gpu/gpu_task.h"
#include "space/gpu/warp_space.h"
#include "tensor/interpreter.h"

namespace pruner {
namespace {

// Five chunks of a product of two groups, one of whose operands has rows of one term in a line.
class LockstepGroup : public testing::Test {
 protected:
  LockstepGroup() {
    const Task task = warp_task({"sm_90", "matmul 128 64 320 bits=16", "m64n8k16-tile"});
    const Space space = warp_space(task, "m64n8k16-tile");
    const Result<Program> made =
        lower(space,
              decided(space,
                      space.drawn.front().value,
                      {{".i.groups", 2}, {".j.fragments", 8}, {".k.steps", 4}, {".buffers", 3}}),
              "k");
    EXPECT_TRUE(made.ok()) << made.error().message();
    program_ = *made;
    Rng rng(3);
    args_ = random_inputs(task.dag, rng);
    expected_ = interpret(task.dag, args_)[0];
    args_.push_back(Tensor(expected_.dtype(), expected_.shape()));
  }

  Result<Unit> run(const StmtRewrite& plant = [](const Stmt&) { return Stmt(); }) {
    Program program = program_;
    program.body = rewrite(program.body, plant);
    TRY(verify(program));
    return interpret(program, args_, {.unwritten = true});
  }
  // The program without the statements of a kind.
  template <typename Node>
  Result<Unit> without() {
    return run([](const Stmt& s) {
      return std::holds_alternative<Node>(s->op) ? make_stmt(Block{}) : Stmt();
    });
  }

  Program program_;
  std::vector<Tensor> args_;
  Tensor expected_;
};

TEST_F(LockstepGroup, MultipliesWhatLiesInSharedMemory) {
  const Result<Unit> ran = run();
  ASSERT_TRUE(ran.ok()) << ran.error().message();
  for (int64_t e = 0; e < expected_.num_elements(); ++e)
    ASSERT_NEAR(args_.back().get(e), expected_.get(e), 1e-3 * (1 + std::abs(expected_.get(e))));
}

TEST_F(LockstepGroup, FindsWhatIsNotOrdered) {
  EXPECT_ERROR(without<SharedFence>(),
               "and the group of thread 0 multiplies it with no fence of shared memory and barrier "
               "after in block 0");
  EXPECT_ERROR(without<GroupFence>(),
               "is written with no fence of its group before its products begin");
  EXPECT_ERROR(without<Barrier>(), "it between two barriers of block 0");
  EXPECT_ERROR(without<Wait>(), "multiplies it before thread 0, which copies to it, has waited");
  EXPECT_ERROR(without<GroupWait>(), "writes it before a group has waited for the products");
}

// Sums may be read when the last wait has left no products on their way, and slots overwritten when
// those of two chunks before are done.
TEST_F(LockstepGroup, FindsWaitsThatLeaveTooMuch) {
  const auto leaving = [&](int instead_of, int groups) {
    return run([=](const Stmt& s) {
      const GroupWait* wait = std::get_if<GroupWait>(&s->op);
      return wait != nullptr && wait->groups == instead_of ? make_stmt(GroupWait{groups}) : Stmt();
    });
  };
  EXPECT_TRUE(leaving(1, 0).ok());
  EXPECT_ERROR(leaving(0, 1), "is touched before its group has waited for its products");
  EXPECT_ERROR(leaving(1, 2), "writes it before a group has waited for the products");
}

TEST_F(LockstepGroup, FindsMatricesThatAreNone) {
  const auto moved = [&](const std::function<void(GroupMma&)>& plant) {
    return run([=](const Stmt& s) {
      const GroupMma* mma = std::get_if<GroupMma>(&s->op);
      if (mma == nullptr) return Stmt();
      GroupMma made = *mma;
      plant(made);
      return make_stmt(std::move(made));
    });
  };
  EXPECT_ERROR(moved([](GroupMma& n) { n.a.indices[1] = n.a.indices[1] + Expr(4); }),
               "in the middle of eight lines or beyond a line's terms");
  EXPECT_ERROR(moved([](GroupMma& n) { n.a.indices[2] = Expr(56); }),
               "in the middle of eight lines or beyond a line's terms");
  EXPECT_ERROR(moved([](GroupMma& n) { n.columns = 72; }), "has 32 elements, a lane has 36 there");
  EXPECT_ERROR(moved([](GroupMma& n) { n.columns = 12; }), "has 12 columns");
  EXPECT_ERROR(moved([](GroupMma& n) { n.b.indices[2] = Expr(4); }),
               "is not seen to be a multiple");
}

TEST_F(LockstepGroup, WantsWholeGroups) {
  const auto guarded = run([](const Stmt& s) {
    if (!std::holds_alternative<GroupCommit>(s->op)) return Stmt();
    const Expr condition = Expr(0) < make_var(VarId{1}, "thread");
    return make_stmt(If{condition, s});
  });
  EXPECT_ERROR(guarded, "a group's commit stands where not all threads come by");
}

}  // namespace
}  // namespace pruner
