#include <gtest/gtest.h>

#include <cmath>

#include "golden.h"
#include "lower/gpu_programs.h"

namespace pruner {
namespace {

TEST(Interpret, RunsEveryKindOfLoop) {
  ProgramBuilder b("sums");
  const TensorId x = b.input("x", {4, 6}), y = b.output("y", {4});
  const TensorId sum = b.registers("sum", {1}, 1);
  b.program.body = b.parallel(4, [&](Expr i) {
    return b.allocate(
        sum,
        b.block({b.store(sum, {0}, float_imm(0)),
                 b.serial(i,
                          [&](Expr) {
                            return b.vectorize(8, 6, [&](Expr l) {
                              return b.add(sum, {0}, b.read(x, {i, l}));
                            });
                          }),
                 b.let(i, [&](Expr same) { return b.store(y, {same}, b.read(sum, {0})); })}));
  });
  std::vector<Tensor> args = {Tensor(DType::kFloat32, {4, 6}), Tensor(DType::kFloat32, {4})};
  for (int64_t i = 0; i < 24; ++i) args[0].set(i, static_cast<double>(i / 6));
  ASSERT_TRUE(interpret(b.program, args).ok());
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(args[1].get(i), static_cast<double>(6 * i * i));
}

TEST(Interpret, ReportsAnIndexOutOfBounds) {
  ProgramBuilder b("wrong");
  const TensorId x = b.input("x", {4}), y = b.output("y", {4});
  b.program.body = b.serial(4, [&](Expr i) { return b.store(y, {i}, b.read(x, {i + 1})); });
  std::vector<Tensor> args = {Tensor(DType::kFloat32, {4}), Tensor(DType::kFloat32, {4})};
  EXPECT_ERROR(interpret(b.program, args), "x: index 4 of dim 0 is not below 4");
}

TEST(Interpret, ShowsWhatWasNeverWritten) {
  ProgramBuilder b("unwritten");
  const TensorId y = b.output("y", {1}), t = b.local("t", {1});
  b.program.body = b.allocate(t, b.store(y, {0}, b.read(t, {0})));
  std::vector<Tensor> args = {Tensor(DType::kFloat32, {1})};
  ASSERT_TRUE(interpret(b.program, args).ok());
  EXPECT_TRUE(std::isnan(args[0].get(0)));
}

TEST(Interpret, ChecksTheArguments) {
  ProgramBuilder b("arguments");
  const TensorId y = b.output("y", {2});
  b.program.body = b.store(y, {0}, float_imm(0));
  std::vector<Tensor> none, wrong = {Tensor(DType::kFloat32, {3})};
  EXPECT_ERROR(interpret(b.program, none), "takes 1 tensors, not 0");
  EXPECT_ERROR(interpret(b.program, wrong), "argument 0 does not fit y");
}

// The threads and blocks of a hand-written program compute what a plain loop does.
TEST(Interpret, RunsAllBlocksAndThreadsOfAGpu) {
  const Program matmul = gpu_matmul({});
  std::vector<Tensor> args = gpu_arguments(matmul);
  const Result<Unit> ran = interpret(matmul, args, {.unwritten = true});
  ASSERT_TRUE(ran.ok()) << ran.error().message();
  for (int64_t i = 0; i < 64; i += 7) {
    for (int64_t j = 0; j < 64; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < 64; ++k) sum += args[0].get(i * 64 + k) * args[1].get(k * 64 + j);
      ASSERT_NEAR(args[2].get(i * 64 + j), sum, 1e-4) << i << ", " << j;
    }
  }
}

TEST(Interpret, RunsThreadsThatMeetAtBarriersAndLaunchesOneAfterTheOther) {
  const Program sums = gpu_row_sums(5, 200, 64), softmax = gpu_softmax(10, 33, 32);
  std::vector<Tensor> rows = gpu_arguments(sums), weights = gpu_arguments(softmax);
  Result<Unit> ran = interpret(sums, rows, {.unwritten = true});
  ASSERT_TRUE(ran.ok()) << ran.error().message();
  ran = interpret(softmax, weights, {.unwritten = true});
  ASSERT_TRUE(ran.ok()) << ran.error().message();
  for (int64_t i = 0; i < 5; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < 200; ++j) sum += rows[0].get(i * 200 + j);
    EXPECT_NEAR(rows[1].get(i), sum, 1e-4);
  }
  for (int64_t i = 0; i < 10; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < 33; ++j) sum += weights[1].get(i * 33 + j);
    EXPECT_NEAR(sum, 1, 1e-5);
  }
}

TEST(Interpret, RunsEveryGpuProgramWithoutAComplaint) {
  for (const NamedProgram& p : gpu_programs()) {
    const Result<Unit> valid = verify(p.program);
    EXPECT_TRUE(valid.ok()) << p.name << ": " << valid.error().message() << print(p.program);
    std::vector<Tensor> args = gpu_arguments(p.program);
    const Result<Unit> ran = interpret(p.program, args, {.unwritten = true});
    EXPECT_TRUE(ran.ok()) << p.name << ": " << ran.error().message();
    for (size_t i = 0; i < args.size(); ++i) {
      for (int64_t e = 0; e < args[i].num_elements(); ++e) {
        ASSERT_FALSE(std::isnan(args[i].get(e))) << p.name << " argument " << i << " at " << e;
      }
    }
  }
}

TEST(Interpret, FindsRacesBetweenTheThreadsOfABlock) {
  const Program racing = gpu_matmul({}, Plant::kNoBarrier);
  std::vector<Tensor> args = gpu_arguments(racing);
  EXPECT_ERROR(interpret(racing, args),
               "race on a.shared[0, 0]: thread 0 writes and thread 1 reads");

  ProgramBuilder b("all");
  const TensorId y = b.output("y", {2});
  b.program.body = b.blocks(
      1, [&](Expr) { return b.threads(4, [&](Expr) { return b.store(y, {1}, float_imm(1)); }); });
  std::vector<Tensor> one = {Tensor(DType::kFloat32, {2})};
  EXPECT_ERROR(interpret(b.program, one), "race on y[1]: thread 0 writes and thread 1 writes");
}

TEST(Interpret, FindsRacesBetweenBlocks) {
  const Program racing = gpu_matmul({}, Plant::kTwoBlocks);
  std::vector<Tensor> args = gpu_arguments(racing);
  EXPECT_ERROR(interpret(racing, args), "block 0 writes and block 2 writes it in one launch");

  ProgramBuilder b("neighbours");
  const TensorId y = b.output("y", {4});
  b.program.body = b.blocks(3, [&](Expr block) {
    return b.threads(1, [&](Expr) { return b.store(y, {block}, b.read(y, {block + 1})); });
  });
  std::vector<Tensor> one = {Tensor(DType::kFloat32, {4})};
  EXPECT_ERROR(interpret(b.program, one), "block 0 reads and block 1 writes it in one launch");
}

TEST(Interpret, FindsWhatIsOutOfBoundsOnAGpu) {
  for (const auto& [plant, words] :
       {std::pair{Plant::kPastGlobal, "c: index 64 of dim 1 is not below 64"},
        std::pair{Plant::kPastShared, "a.shared: index 16 of dim 1 is not below 16"}}) {
    const Program program = gpu_matmul({}, plant);
    std::vector<Tensor> args = gpu_arguments(program);
    EXPECT_ERROR(interpret(program, args), words);
  }
}

TEST(Interpret, FindsABarrierThatSomeThreadsDoNotComeTo) {
  const Program program = gpu_matmul({}, Plant::kDividedBarrier);
  std::vector<Tensor> args = gpu_arguments(program);
  EXPECT_ERROR(interpret(program, args), "a barrier is reached by 32 of 64 threads");
}

TEST(Interpret, FindsReadsOfWhatWasNeverWritten) {
  ProgramBuilder b("unwritten");
  const TensorId y = b.output("y", {8}), s = b.shared("s", {8});
  b.program.body = b.blocks(1, [&](Expr) {
    return b.allocate(s, b.threads(8, [&](Expr t) {
      return b.block({b.guard(t < Expr(5), b.store(s, {t}, float_imm(1))),
                      b.barrier(),
                      b.store(y, {t}, b.read(s, {t}))});
    }));
  });
  std::vector<Tensor> args = {Tensor(DType::kFloat32, {8})};
  EXPECT_ERROR(interpret(b.program, args, {.unwritten = true}),
               "s[5] is read before it is written");
  ASSERT_TRUE(interpret(b.program, args).ok());
  EXPECT_EQ(args[0].get(4), 1);
  EXPECT_TRUE(std::isnan(args[0].get(5)));
}

}  // namespace
}  // namespace pruner
