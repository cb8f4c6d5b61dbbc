#include "lower/warp_rules.h"

#include <gtest/gtest.h>

#include "golden.h"
#include "lower/warp_programs.h"

namespace pruner {
namespace {

constexpr DType kF16 = DType::kFloat16;

class WarpRules : public testing::Test {
 protected:
  using Body = ProgramBuilder::Body;

  // A body of the threads of a block, in which everything is allocated.
  Result<Unit> check(const Body& body, int64_t threads = 64) {
    b.program.body = b.blocks(2, [&](Expr) {
      return b.allocate(shared, b.threads(threads, [&](Expr t) {
        Stmt inside = body(t);
        for (const TensorId id : {sums, x, y, other}) inside = b.allocate(id, inside);
        return inside;
      }));
    });
    return verify(b.program);
  }
  Stmt mma() const { return make_stmt(mma_node); }
  Stmt matrix(Expr row) const {
    return make_stmt(LoadMatrix{{x, {0}}, {shared, {row, 0}}, 4, false});
  }

  ProgramBuilder b{"p"};
  TensorId in = b.input("in", {64, 64}, kF16), out = b.output("out", {64});
  TensorId shared = b.shared("shared", {64, 64}, kF16), sums = b.registers("sums", {4}, 1),
           x = b.registers("x", {8}, 1, kF16), y = b.registers("y", {4}, 1, kF16),
           other = b.registers("other", {8}, 1, DType::kBFloat16);
  Mma mma_node = {find_mma_instruction("m16n8k16", kF16, kF16, DType::kFloat32),
                  {sums, {0}},
                  {x, {0}},
                  {y, {0}}};
  AsyncCopy copy = {{shared, {0, 0}}, {in, {0, 0}}, 8, Expr(8)};
};

TEST_F(WarpRules, WantAllThreadsOfAWarp) {
  const auto guarded = [&](Expr condition) { return b.guard(condition, mma()); };
  EXPECT_TRUE(check([&](Expr) { return mma(); }).ok());
  EXPECT_TRUE(check([&](Expr t) { return guarded(floor_div(t, Expr(32)) < Expr(1)); }).ok());
  EXPECT_TRUE(check([&](Expr t) {
                return b.let(floor_mod(t, Expr(64)), [&](Expr same) {
                  return b.serial(floor_div(same, Expr(32)), [&](Expr) { return mma(); });
                });
              }).ok());
  const char* const divided = "an mma stands where not all threads of a warp come by";
  EXPECT_ERROR(check([&](Expr t) { return guarded(t < Expr(32)); }), divided);
  EXPECT_ERROR(check([&](Expr t) { return guarded(floor_div(t, Expr(16)) < Expr(1)); }), divided);
  EXPECT_ERROR(check([&](Expr t) { return guarded(floor_div(t + 1, Expr(32)) < Expr(1)); }),
               divided);
  EXPECT_ERROR(check([&](Expr t) { return b.serial(t, [&](Expr) { return mma(); }); }), divided);
  EXPECT_ERROR(check([&](Expr t) { return b.guard(t < Expr(1), make_stmt(Wait{0})); }),
               "a wait stands where not all");
  EXPECT_ERROR(check([&](Expr t) { return b.guard(t < Expr(1), make_stmt(Commit{})); }),
               "a commit stands where not all");
  EXPECT_ERROR(check([&](Expr t) { return b.guard(t < Expr(1), matrix(0)); }),
               "a load of matrices stands where not all");
  EXPECT_ERROR(check([&](Expr) { return mma(); }, 48),
               "an mma stands in a block of 48 threads, which are no warps");
  EXPECT_ERROR(check([&](Expr) { return b.vectorize(2, 2, [&](Expr) { return mma(); }); }),
               "an mma stands in a vector loop");
  EXPECT_TRUE(check([&](Expr t) { return b.guard(t < Expr(1), make_stmt(copy)); }).ok());
}

TEST_F(WarpRules, AreOfGpus) {
  b.program.body = b.serial(2, [&](Expr) { return make_stmt(Commit{}); });
  EXPECT_ERROR(verify(b.program), "a commit stands in no thread loop");
}

TEST_F(WarpRules, WantFragmentsInRegisters) {
  const auto checked = [&] { return check([&](Expr) { return mma(); }); };
  mma_node.a = {shared, {0, 0}};
  EXPECT_ERROR(checked(), "shared is no register buffer");
  mma_node.a = {other, {0}};
  EXPECT_ERROR(checked(), "other is of bfloat16, not of float16");
  mma_node.a = {x, {1}};
  EXPECT_ERROR(checked(), "a place of x is not seen to be a multiple of 2");
  mma_node.a = {y, {0}};
  EXPECT_ERROR(checked(), "y has 4 elements, a lane has 8 there");
  mma_node.a = {x, {0, 0}};
  EXPECT_ERROR(checked(), "x has 1 dims and is accessed by 2");
  mma_node.instruction = nullptr;
  mma_node.a = {x, {0}};
  EXPECT_ERROR(checked(), "an mma has no instruction");
  EXPECT_ERROR(check([&](Expr t) {
                 return make_stmt(LoadMatrix{{x, {t * 2}}, {shared, {0, 0}}, 4, false});
               }),
               "register buffer x is accessed by what is no constant");
  mma_node = {find_mma_instruction("m16n8k16", kF16, kF16, kF16), {x, {0}}, {x, {0}}, {y, {0}}};
  EXPECT_ERROR(checked(), "an mma adds to its operand x");
}

TEST_F(WarpRules, WantMatricesOfAlignedRows) {
  LoadMatrix load = {{x, {0}}, {shared, {0, 0}}, 4, true};
  const auto checked = [&] { return check([&](Expr) { return make_stmt(load); }); };
  EXPECT_TRUE(checked().ok());
  load.matrices = 3;
  EXPECT_ERROR(checked(), "a load of 3 matrices");
  load = {{x, {0}}, {shared, {0, 4}}, 4, false};
  EXPECT_ERROR(checked(), "a place of shared is not seen to be a multiple of 8");
  load = {{x, {0}}, {in, {0, 0}}, 4, false};
  EXPECT_ERROR(checked(), "in is no shared buffer");
  load = {{y, {0}}, {shared, {0, 0}}, 4, false};
  EXPECT_ERROR(checked(), "y has 4 elements, a lane has 8 there");
  load = {{other, {0}}, {shared, {0, 0}}, 4, false};
  EXPECT_ERROR(checked(), "other is of bfloat16, not of float16");
  shared = b.shared("bytes", {64, 64}, DType::kInt8);
  x = b.registers("four", {16}, 1, DType::kInt8);
  load = {{x, {0}}, {shared, {0, 0}}, 4, true};
  EXPECT_ERROR(checked(), "a load of transposed matrices of int8");
}

TEST_F(WarpRules, WantFoldsOfFloatsInRegisters) {
  LaneFold fold = {{sums, {0}}, Combiner::kSum, 32};
  const auto checked = [&] { return check([&](Expr) { return make_stmt(fold); }); };
  EXPECT_TRUE(checked().ok());
  fold.lanes = 6;
  EXPECT_ERROR(checked(), "a fold over 6 lanes");
  fold.lanes = 1;
  EXPECT_ERROR(checked(), "a fold over 1 lanes");
  fold = {{sums, {0}}, Combiner::kProd, 4};
  EXPECT_ERROR(checked(), "a fold over lanes that neither adds nor takes the greatest");
  fold = {{x, {0}}, Combiner::kMax, 4};
  EXPECT_ERROR(checked(), "x is of float16, not of float32");
  fold = {{out, {0}}, Combiner::kMax, 4};
  EXPECT_ERROR(checked(), "out is no register buffer");
  EXPECT_ERROR(check([&](Expr t) {
                 return b.guard(t < Expr(4), make_stmt(LaneFold{{sums, {0}}, Combiner::kMax, 4}));
               }),
               "a fold over lanes stands where not all");
}

TEST_F(WarpRules, WantCopiesFromGlobalToSharedMemory) {
  const auto checked = [&] { return check([&](Expr) { return make_stmt(copy); }); };
  EXPECT_TRUE(checked().ok());
  copy.elements = 3;
  EXPECT_ERROR(checked(), "an asynchronous copy of 6 bytes");
  copy = {{shared, {0, 0}}, {in, {0, 4}}, 8, Expr(8)};
  EXPECT_ERROR(checked(), "a place of in is not seen to be a multiple of 8");
  copy = {{shared, {0, 2}}, {in, {0, 0}}, 4, Expr(4)};
  EXPECT_ERROR(checked(), "a place of shared is not seen to be a multiple of 4");
  copy = {{x, {0}}, {in, {0, 0}}, 8, Expr(8)};
  EXPECT_ERROR(checked(), "x is no shared buffer");
  copy = {{shared, {0, 0}}, {shared, {0, 8}}, 8, Expr(8)};
  EXPECT_ERROR(checked(), "shared is no global memory to copy from");
  copy = {{shared, {0, 0}}, {out, {0}}, 4, Expr(4)};
  EXPECT_ERROR(checked(), "shared is of float16, not of float32");
  copy = {{shared, {0, 0}}, {in, {0, 0}}, 8, float_imm(8)};
  EXPECT_ERROR(checked(), "is of float32");
  EXPECT_ERROR(check([&](Expr) { return make_stmt(Wait{-1}); }), "a wait for -1 groups to be left");
}

}  // namespace
}  // namespace pruner
