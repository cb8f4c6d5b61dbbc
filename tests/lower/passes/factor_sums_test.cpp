#include "lower/passes/pass_programs.h"
#include "lower/program_builder.h"

namespace pruner {
namespace {

// A block's sum is rounded before it is multiplied.
constexpr double kRounding = 1e-6;

// y[j] is the sum over blocks of 16 of x[b, k] * (w[b, k, j] * s[b or k, j]).
Program blocks(int64_t size, bool scale_of_term = false) {
  ProgramBuilder b("k");
  const TensorId x = b.input("x", {3, size}), w = b.input("w", {3, size, 8});
  const TensorId s = b.input("s", {size, 8}), y = b.output("y", {8});
  const TensorId sum = b.registers("sum", {8}, 8);
  const auto add = [&](Expr block, Expr k, Expr j) {
    const Expr scale = b.read(s, {scale_of_term ? k : block, j});
    return b.add(sum, {j}, b.read(x, {block, k}) * (b.read(w, {block, k, j}) * scale));
  };
  const auto lanes = [&](const std::function<Stmt(Expr)>& at) { return b.vectorize(8, 8, at); };
  b.program.body =
      b.allocate(sum,
                 b.block({lanes([&](Expr j) { return b.store(sum, {j}, float_imm(0)); }),
                          b.serial(3,
                                   [&](Expr block) {
                                     return b.serial(size, [&](Expr k) {
                                       return lanes([&](Expr j) { return add(block, k, j); });
                                     });
                                   }),
                          lanes([&](Expr j) { return b.store(y, {j}, b.read(sum, {j})); })}));
  return b.program;
}

TEST(FactorSums, MultipliesTheSumOfABlockOnce) {
  const Program before = blocks(16), after = factor_sums(before);
  expect_same_results(before, after, kRounding);
  const std::string text = print(after);
  EXPECT_NE(text.find("sum.part[i3] = (sum.part[i3] + (x[i1, i2] * w[i1, i2, i3]));"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(" * s[i1, "), std::string::npos) << text;
}

TEST(FactorSums, LeavesWhatDiffersByTerm) {
  const Program before = blocks(16, true);
  EXPECT_EQ(factor_sums(before).body, before.body);
}

TEST(FactorSums, LeavesShortSums) {
  const Program before = blocks(4);
  EXPECT_EQ(factor_sums(before).body, before.body);
}

TEST(FactorSums, KeepsWhatCandidatesCompute) {
  for (const char* op :
       {"coded_matmul 1 37 96 block=32", "coded_matmul 3 50 64 bits=4 block=16 +relu"})
    EXPECT_GT(changed_by("factor_sums", operator_task(op), 40, kRounding).size(), 4) << op;
}

}  // namespace
}  // namespace pruner
