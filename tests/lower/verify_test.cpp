#include <gtest/gtest.h>

#include "golden.h"
#include "lower/program_builder.h"

namespace pruner {
namespace {

class VerifyTest : public testing::Test {
 protected:
  VerifyTest()
      : b("p"),
        x(b.input("x", {8, 16})),
        y(b.output("y", {8, 16})),
        acc(b.registers("acc", {2, 16}, 8)) {}

  Result<Unit> check(Stmt body) {
    b.program.body = std::move(body);
    return verify(b.program);
  }
  Stmt over_lanes(const ProgramBuilder::Body& body) { return b.vectorize(8, 8, body); }
  Stmt copy(Expr i, Expr j) { return b.store(y, {i, j}, b.read(x, {i, j})); }

  ProgramBuilder b;
  TensorId x, y, acc;
};

TEST_F(VerifyTest, AcceptsWhatLoweringMakes) {
  const Result<Unit> result = check(b.parallel(8, [&](Expr i) {
    return b.allocate(acc, b.unroll(2, [&](Expr u) {
      return b.unroll(2, [&](Expr v) {
        return over_lanes([&](Expr l) {
          const Expr j = v * Expr(8) + l;
          return b.block({b.store(acc, {u, j}, float_imm(0)),
                          b.add(acc, {u, j}, b.read(x, {i, j})),
                          b.store(y, {i, j}, b.read(acc, {u, j}))});
        });
      });
    }));
  }));
  EXPECT_TRUE(result.ok()) << result.error().message();
}

TEST_F(VerifyTest, ChecksLoops) {
  const auto element = [&](Expr) { return copy(0, 0); };
  EXPECT_ERROR(check(b.serial(8, [&](Expr) { return b.parallel(2, element); })),
               "is not outermost");
  EXPECT_ERROR(check(b.serial(8, [&](Expr i) { return b.unroll(i, element); })),
               "needs a constant extent");
  EXPECT_ERROR(check(over_lanes([&](Expr) { return b.serial(2, element); })),
               "is inside a vector loop and not unrolled");
  EXPECT_ERROR(check(b.vectorize(8, 9, element)), "has extent 9 and 8 lanes");
  EXPECT_ERROR(check(b.vectorize(6, 6, element)), "has 6 lanes");
}

TEST_F(VerifyTest, ChecksPrefetches) {
  EXPECT_TRUE(check(make_stmt(Prefetch{x, {Expr(9), Expr(99)}})).ok()) << "beyond the end";
  EXPECT_ERROR(check(make_stmt(Prefetch{x, {Expr(0)}})), "with 1 indices");
  EXPECT_ERROR(check(make_stmt(Prefetch{acc, {Expr(0), Expr(0)}})), "prefetch of acc");
  EXPECT_ERROR(check(over_lanes([&](Expr l) {
                 return make_stmt(Prefetch{x, {Expr(0), l}});
               })),
               "differs between lanes");
}

TEST_F(VerifyTest, ChecksScopes) {
  Expr escaped;
  const Stmt loop = b.serial(8, [&](Expr i) {
    escaped = i;
    return copy(i, 0);
  });
  EXPECT_ERROR(check(b.block({loop, copy(escaped, 0)})), "variable i0 is used out of its scope");
  const VarId var = as<Var>(escaped)->id;
  EXPECT_ERROR(check(make_stmt(For{var, 2, LoopKind::kSerial, 1, loop})),
               "variable i0 is bound twice");
  EXPECT_ERROR(check(over_lanes([&](Expr l) {
                 return b.store(acc, {0, l}, float_imm(0));
               })),
               "acc is not allocated here");
  EXPECT_ERROR(check(b.allocate(acc,
                                b.parallel(2,
                                           [&](Expr) {
                                             return over_lanes([&](Expr l) {
                                               return b.store(acc, {0, l}, float_imm(0));
                                             });
                                           }))),
               "acc is not allocated here");
  EXPECT_ERROR(check(b.allocate(x, copy(0, 0))), "x needs no allocation");
}

TEST_F(VerifyTest, ChecksAccesses) {
  EXPECT_ERROR(check(b.store(y, {0}, float_imm(0))), "y has 2 dims and is accessed by 1");
  EXPECT_ERROR(check(b.store(x, {0, 0}, float_imm(0))), "x is no output");
  EXPECT_ERROR(check(b.store(y, {0, 0}, Expr(1))), "a int64 is stored to y of float32");
  EXPECT_ERROR(check(b.store(y, {0, 0}, load(x, {0, 0}, DType::kInt32))), "x is loaded as int32");
  EXPECT_ERROR(check(b.store(y, {0, int_imm(0, DType::kInt32)}, float_imm(0))),
               "an index of y is of int32");
}

TEST_F(VerifyTest, ChecksRegisters) {
  const auto in_registers = [&](Stmt body) { return check(b.allocate(acc, std::move(body))); };
  const auto zero = [&](Expr i, Expr j) { return b.store(acc, {i, j}, float_imm(0)); };
  EXPECT_ERROR(in_registers(b.serial(
                   2, [&](Expr i) { return over_lanes([&](Expr l) { return zero(i, l); }); })),
               "register buffer acc is accessed by what is no constant");
  EXPECT_ERROR(in_registers(zero(0, 0)), "register buffer acc is accessed by 0 * lane");
  EXPECT_ERROR(in_registers(over_lanes([&](Expr l) { return zero(0, l + 4); })),
               "is not accessed by its vectors of 8");
  EXPECT_ERROR(in_registers(b.vectorize(16, 16, [&](Expr l) { return zero(0, l); })),
               "is not accessed by its vectors of 8");
}

TEST_F(VerifyTest, ChecksReductionsOverLanes) {
  EXPECT_ERROR(check(over_lanes([&](Expr l) {
                 return b.store(y, {0, 0}, b.read(x, {0, l}));
               })),
               "a store to one place of y by all lanes is no reduction");
  EXPECT_TRUE(check(over_lanes([&](Expr l) { return b.add(y, {0, 0}, b.read(x, {0, l})); })).ok());
}

TEST_F(VerifyTest, ChecksTheWorkspace) {
  b.workspace("t", {100});
  b.program.workspace_bytes = 100;
  EXPECT_ERROR(check(copy(0, 0)), "t does not fit the workspace: offset 0, 400 bytes of 100");
}

// A program with one block loop, in which `body` makes what stands below.
class VerifyGpuTest : public VerifyTest {
 protected:
  Result<Unit> in_blocks(const ProgramBuilder::Body& body) { return check(b.blocks(4, body)); }
  Result<Unit> in_threads(const ProgramBuilder::Body& body) {
    return in_blocks([&](Expr) { return b.threads(8, body); });
  }
  Stmt zero(Expr i, Expr j) { return b.store(y, {i, j}, float_imm(0)); }
  TensorId shared = b.shared("s", {8});
};

TEST_F(VerifyGpuTest, ChecksWhatStandsWhere) {
  EXPECT_TRUE(in_threads([&](Expr t) { return zero(0, t); }).ok());
  const Stmt launch =
      b.blocks(1, [&](Expr) { return b.threads(8, [&](Expr t) { return zero(0, t); }); });
  EXPECT_TRUE(check(b.block({launch})).ok());
  EXPECT_ERROR(check(b.block({launch, zero(0, 0)})), "beside a block loop stands what is none");
  EXPECT_ERROR(in_blocks([&](Expr) { return zero(0, 0); }),
               "stands what is no let, no shared buffer and no thread loop");
  EXPECT_ERROR(in_threads([&](Expr) { return b.threads(2, [&](Expr t) { return zero(0, t); }); }),
               "stands not directly in a block loop");
  EXPECT_ERROR(check(b.serial(2, [&](Expr) { return launch; })), "is not outermost");
  EXPECT_ERROR(in_threads([&](Expr) { return b.parallel(2, [&](Expr i) { return zero(0, i); }); }),
               "in a program for GPUs");
  EXPECT_ERROR(
      check(b.blocks(
          4, [&](Expr block) { return b.threads(block, [&](Expr t) { return zero(0, t); }); })),
      "needs a constant extent above 0");
}

TEST_F(VerifyGpuTest, ChecksBarriers) {
  EXPECT_ERROR(check(b.barrier()), "a barrier stands in no thread loop");
  const auto uniform = [&](Expr) { return b.serial(3, [&](Expr) { return b.barrier(); }); };
  EXPECT_TRUE(in_threads(uniform).ok());
  EXPECT_TRUE(in_blocks([&](Expr block) {
                return b.threads(8, [&](Expr) { return b.guard(block < Expr(2), b.barrier()); });
              }).ok());
  const char* divided = "a barrier stands where not all threads come by";
  EXPECT_ERROR(in_threads([&](Expr t) { return b.guard(t < Expr(2), b.barrier()); }), divided);
  EXPECT_ERROR(in_threads([&](Expr t) {
                 return b.let(
                     t + 1, [&](Expr n) { return b.serial(n, [&](Expr) { return b.barrier(); }); });
               }),
               divided);
  EXPECT_ERROR(in_threads([&](Expr) {
                 return b.guard(b.read(y, {0, 0}) < float_imm(1), b.barrier());
               }),
               divided);
  EXPECT_ERROR(
      in_threads([&](Expr) { return b.vectorize(4, 4, [&](Expr) { return b.barrier(); }); }),
      "a barrier stands in a vector loop");
}

TEST_F(VerifyGpuTest, ChecksSharedBuffers) {
  const auto use = [&](Expr t) { return b.store(shared, {t}, float_imm(0)); };
  EXPECT_TRUE(in_blocks([&](Expr) { return b.allocate(shared, b.threads(8, use)); }).ok());
  EXPECT_ERROR(in_threads([&](Expr t) { return b.allocate(shared, use(t)); }),
               "s is shared and not allocated between a block and its threads");
  EXPECT_ERROR(check(b.allocate(shared, use(0))),
               "s is shared and not allocated between a block and its threads");
  EXPECT_ERROR(in_blocks([&](Expr) {
                 return b.allocate(acc, b.threads(8, [&](Expr t) { return zero(0, t); }));
               }),
               "acc is allocated outside of a thread");
}

TEST_F(VerifyGpuTest, ChecksVectorLoops) {
  EXPECT_ERROR(
      in_threads([&](Expr) { return b.vectorize(16, 16, [&](Expr l) { return zero(0, l); }); }),
      "has 16 lanes");
  EXPECT_ERROR(
      in_threads([&](Expr) {
        return b.vectorize(4, 4, [&](Expr l) { return b.add(y, {0, 0}, b.read(x, {0, l})); });
      }),
      "all lanes of a GPU's vector loop store to one place of y");
}

}  // namespace
}  // namespace pruner
