// label: codegen
// Every operator x seeded candidates x instruction sets: what LLVM makes of a candidate computes
// what the reference interpreter does. PRUNER_CANDIDATES=N draws N candidates of each (default 4).
#include <gtest/gtest.h>

#include "codegen/candidate_code.h"
#include "lower/lower.h"
#include "space/operator_task.h"
#include "tensor/interpreter.h"

namespace pruner {
namespace {

class EveryOperator : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(EveryOperator, ComputesWhatTheInterpreterDoes) {
  const auto& [op, mcpu] = GetParam();
  const bool wide = std::string(mcpu) == "x86-64-v4";
  if (wide && !__builtin_cpu_supports("avx512vl")) GTEST_SKIP() << "this CPU has no AVX-512";
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "this CPU has no AVX2";
  const Task task = operator_task(op, test_target(wide ? 64 : 32));
  const Space space = make_space(task);
  Rng rng(11);
  const std::vector<Tensor> inputs = random_inputs(task.dag, rng);
  const std::vector<Tensor> expected = interpret(task.dag, inputs);
  ASSERT_EQ(expected.size(), 1u);
  for (int i = 0; i < candidates_each(4); ++i) {
    const Candidate candidate = sample(space, rng);
    const std::string what = print(space, candidate);
    const Result<Program> program = lower(space, candidate, "k");
    ASSERT_TRUE(program.ok()) << program.error().message() << "\n" << what;
    const Tensor out = run_code(*program, task.target, inputs);
    ASSERT_EQ(out.shape(), expected[0].shape()) << what;
    for (int64_t e = 0; e < out.num_elements(); ++e) {
      ASSERT_NEAR(out.get(e), expected[0].get(e), 1e-4 * (1 + std::abs(expected[0].get(e))))
          << "element " << e << "\n"
          << what << "\n"
          << print(*program);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Candidates,
                         EveryOperator,
                         testing::Combine(testing::ValuesIn(kSmallOperators),
                                          testing::Values("x86-64-v4", "x86-64-v3")));

}  // namespace
}  // namespace pruner
