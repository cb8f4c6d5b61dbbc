#include <gtest/gtest.h>

#include <cmath>

#include "golden.h"
#include "lower/program_builder.h"

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

}  // namespace
}  // namespace pruner
