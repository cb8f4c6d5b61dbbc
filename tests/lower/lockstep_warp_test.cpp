#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "golden.h"
#include "lower/warp_programs.h"

namespace pruner {
namespace {

TEST(LockstepWarp, MultipliesByEveryInstruction) {
  for (const NamedMatmul& p : warp_matmuls()) {
    SCOPED_TRACE(p.name);
    const Program program = warp_matmul(p.matmul);
    const Result<Unit> valid = verify(program);
    ASSERT_TRUE(valid.ok()) << valid.error().message() << print(program);
    std::vector<Tensor> args = warp_arguments(program);
    const Result<Unit> ran = interpret(program, args, {.unwritten = true});
    ASSERT_TRUE(ran.ok()) << ran.error().message();
    expect_product(p.matmul, args);
  }
}

WarpMatmul half() {
  return {.instruction =
              find_mma_instruction("m16n8k16", DType::kFloat16, DType::kFloat16, DType::kFloat32)};
}

Result<Unit> run(const WarpMatmul& g, WarpPlant plant) {
  const Program program = warp_matmul(g, plant);
  TRY(verify(program));
  std::vector<Tensor> args = warp_arguments(program);
  return interpret(program, args);
}

TEST(LockstepWarp, FindsWhatIsWrongWithCopies) {
  EXPECT_TRUE(run(half(), WarpPlant::kNothing).ok());
  EXPECT_ERROR(run(half(), WarpPlant::kNoWait),
               "race on a.shared[0, 0, 0]: thread 0 reads it before thread 0, which copies to it, "
               "has waited for that in block 0");
  EXPECT_ERROR(run(half(), WarpPlant::kNoCommit), "has waited for that");
  EXPECT_ERROR(run(half(), WarpPlant::kNoBarrier), "it between two barriers of block 0");
  EXPECT_ERROR(run(half(), WarpPlant::kTooFewStages), "has waited for that");
  EXPECT_ERROR(
      run(half(), WarpPlant::kOverwrites),
      "race on a.shared[0, 0, 0]: several threads reads and thread 0 writes it between two "
      "barriers of block 0");
  EXPECT_ERROR(run(half(), WarpPlant::kPastEnd), "a: index 56 of dim 0 is not below 56");
}

// Each of 32 threads copies four elements to two slots, and waits for the first of them.
class CopiesTest : public testing::Test {
 protected:
  Result<Unit> run(const std::function<Expr(Expr)>& valid, int slot_read) {
    b.program.body = b.blocks(1, [&](Expr) {
      return b.allocate(tile, b.threads(32, [&](Expr t) {
        const auto copy = [&](int slot) {
          return make_stmt(AsyncCopy{{tile, {slot, t * 4}}, {x, {t * 4}}, 4, valid(t)});
        };
        return b.block({copy(0),
                        make_stmt(Commit{}),
                        copy(1),
                        make_stmt(Commit{}),
                        make_stmt(Wait{1}),
                        b.barrier(),
                        b.store(y, {t}, b.read(tile, {slot_read, t}))});
      }));
    });
    TRY(verify(b.program));
    args = warp_arguments(b.program);
    return interpret(b.program, args, {.unwritten = true});
  }
  // Threads from 4 on read nothing of x, which ends there.
  static Expr four_each(Expr t) { return select(t < Expr(4), Expr(4), Expr(0)); }

  ProgramBuilder b{"copies"};
  TensorId x = b.input("x", {16}), y = b.output("y", {32}), tile = b.shared("tile", {2, 128});
  std::vector<Tensor> args;
};

TEST_F(CopiesTest, AreThereWhenTheirGroupIsWaitedFor) {
  const Result<Unit> ran = run(four_each, 0);
  ASSERT_TRUE(ran.ok()) << ran.error().message();
  for (int i = 0; i < 32; ++i) EXPECT_EQ(args[1].get(i), i < 16 ? args[0].get(i) : 0) << i;
  EXPECT_ERROR(run(four_each, 1),
               "race on tile[1, 0]: thread 0 reads it before thread 0, which copies to it, has "
               "waited for that");
}

TEST_F(CopiesTest, ReadWhatIsThere) {
  EXPECT_ERROR(run([](Expr) { return Expr(4); }, 0), "x: index 16 of dim 0 is not below 16");
  EXPECT_ERROR(run([](Expr t) { return select(t < Expr(4), Expr(5), Expr(0)); }, 0),
               "a copy reads 5 of 4 elements");
}

// Each lane gets the result of its group; what is no number stays none in its group alone.
TEST(LockstepWarp, FoldsOverGroupsOfLanes) {
  for (const Combiner combiner : {Combiner::kSum, Combiner::kMax}) {
    for (const int lanes : {2, 4, 8, 16, 32}) {
      ProgramBuilder b("fold");
      const TensorId x = b.input("x", {64}), y = b.output("y", {64});
      const TensorId held = b.registers("held", {1}, 1);
      b.program.body = b.blocks(1, [&](Expr) {
        return b.threads(64, [&](Expr t) {
          return b.allocate(held,
                            b.block({b.store(held, {0}, b.read(x, {t})),
                                     make_stmt(LaneFold{{held, {0}}, combiner, lanes}),
                                     b.store(y, {t}, b.read(held, {0}))}));
        });
      });
      ASSERT_TRUE(verify(b.program).ok());
      std::vector<Tensor> args = warp_arguments(b.program);
      args[0].set(37, std::numeric_limits<double>::quiet_NaN());
      ASSERT_TRUE(interpret(b.program, args, {.unwritten = true}).ok());
      for (int t = 0; t < 64; ++t) {
        double expected = args[0].get(t / lanes * lanes);
        for (int other = 1; other < lanes; ++other) {
          const double value = args[0].get(t / lanes * lanes + other);
          expected = combiner == Combiner::kSum ? expected + value : std::max(expected, value);
        }
        if (t / lanes == 37 / lanes) {
          EXPECT_TRUE(std::isnan(args[1].get(t)));
        } else {
          EXPECT_NEAR(args[1].get(t), expected, 1e-5) << t << " of " << lanes;
        }
      }
    }
  }
}

TEST(LockstepWarp, FindsFragmentsThatEndBeyondTheirRegisters) {
  ProgramBuilder b("beyond");
  const TensorId y = b.output("y", {32}, DType::kFloat16);
  const TensorId tile = b.shared("tile", {8, 64}, DType::kFloat16);
  const TensorId x = b.registers("x", {8}, 1, DType::kFloat16);
  b.program.body = b.blocks(1, [&](Expr) {
    return b.allocate(tile, b.threads(32, [&](Expr t) {
      const ElementPlace from = {tile, {floor_mod(t, Expr(8)), floor_div(t, Expr(8)) * 8}};
      return b.allocate(x,
                        b.block({make_stmt(LoadMatrix{{x, {2}}, from, 4, false}),
                                 b.store(y, {t}, b.read(x, {2}))}));
    }));
  });
  ASSERT_TRUE(verify(b.program).ok());
  std::vector<Tensor> args = warp_arguments(b.program);
  EXPECT_ERROR(interpret(b.program, args), "x: 8 elements from number 2 on are beyond its end");
}

}  // namespace
}  // namespace pruner
