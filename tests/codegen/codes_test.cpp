// label: codegen
// Products with matrices of codes: halves with their signs, zero points of each block, and sums of
// a block that are multiplied once, as LLVM makes them.
#include <gtest/gtest.h>

#include "codegen/candidate_code.h"
#include "lower/lower.h"
#include "space/operator_task.h"
#include "tensor/interpreter.h"
#include "tensor/operator_dags.h"

namespace pruner {
namespace {

struct Case {
  int64_t rows, k, n, block;
  int bits;
  DType zeros;  // bool: one zero for all
};

ComputeDag coded(const Case& c) {
  DagBuilder b;
  CodedMatrix matrix{.bits = c.bits, .block = c.block, .zero = 5};
  const StageId data = b.placeholder("data", {c.rows, c.k});
  matrix.codes = b.placeholder("codes", {c.k * c.bits / 8, c.n}, DType::kInt8, true);
  const std::vector<int64_t> blocks = {c.k / c.block, c.n};
  matrix.scales = b.placeholder("scales", blocks, DType::kFloat32, true);
  if (c.zeros != DType::kBool) matrix.zeros = b.placeholder("zeros", blocks, c.zeros, true);
  return b.finish({add_coded_matmul(b, data, matrix)});
}

class Codes : public testing::TestWithParam<Case> {};

TEST_P(Codes, ComputeWhatTheInterpreterDoes) {
  const bool wide = __builtin_cpu_supports("avx512vl") != 0;
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "this CPU has no AVX2";
  const Task task = make_task(coded(GetParam()), test_target(wide ? 64 : 32), "codes");
  const Space space = make_space(task);
  Rng rng(5);
  std::vector<Tensor> inputs = random_inputs(task.dag, rng);
  for (Tensor& input : inputs) {
    for (int64_t e = 0; input.dtype() == DType::kInt8 && e < input.num_elements(); ++e)
      input.set_int(e, rng.below(256) - 128);
  }
  const Tensor expected = interpret(task.dag, inputs)[0];
  double largest = 0;
  for (int64_t e = 0; e < expected.num_elements(); ++e)
    largest = std::max(largest, std::abs(expected.get(e)));
  EXPECT_GT(largest, 1);
  for (int i = 0; i < candidates_each(12); ++i) {
    const Candidate candidate = sample(space, rng);
    const Result<Program> program = lower(space, candidate, "k");
    ASSERT_TRUE(program.ok()) << program.error().message();
    const Tensor found = run_code(*program, task.target, inputs);
    ASSERT_EQ(found.shape(), expected.shape());
    for (int64_t e = 0; e < found.num_elements(); ++e)
      ASSERT_NEAR(found.get(e), expected.get(e), 2e-5 * largest) << print(space, candidate);
  }
}

INSTANTIATE_TEST_SUITE_P(Matrices,
                         Codes,
                         testing::Values(Case{1, 96, 200, 32, 8, DType::kBool},
                                         Case{1, 96, 83, 32, 4, DType::kBool},
                                         Case{1, 128, 65, 128, 4, DType::kInt8},
                                         Case{3, 64, 70, 16, 8, DType::kInt8},
                                         Case{4, 64, 33, 16, 4, DType::kFloat32},
                                         Case{1, 2048, 40, 32, 4, DType::kInt8}));

}  // namespace
}  // namespace pruner
