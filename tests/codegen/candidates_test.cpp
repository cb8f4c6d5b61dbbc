// label: codegen
// Every operator x seeded candidates x instruction sets: what LLVM makes of a candidate computes
// what the reference interpreter does. PRUNER_CANDIDATES=N draws N candidates of each (default 4).
#include <gtest/gtest.h>

#include <cstring>

#include "codegen/codegen.h"
#include "codegen/loader.h"
#include "lower/lower.h"
#include "space/operator_task.h"
#include "tensor/interpreter.h"

namespace pruner {
namespace {

// Runs the items in order: the pool of these tests.
void run_serially(PrunerPool*, PrunerBody body, void* closure, int64_t n) {
  for (int64_t i = 0; i < n; ++i) body(closure, i, i + 1);
}

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
  for (int i = 0; i < candidates_each(4); ++i) {
    const Candidate candidate = sample(space, rng);
    const std::string what = print(space, candidate);
    const Result<Program> program = lower(space, candidate, "k");
    ASSERT_TRUE(program.ok()) << program.error().message() << "\n" << what;
    const Result<Artifact> artifact = compile(*program, task.target, "k");
    ASSERT_TRUE(artifact.ok()) << artifact.error().message() << "\n" << what;
    const auto kernel = load_kernel(artifact->object, "k");
    ASSERT_TRUE(kernel.ok()) << kernel.error().message() << "\n" << what;
    std::vector<Tensor> args;
    std::vector<void*> pointers;
    for (size_t a = 0; a < artifact->arguments.size(); ++a) {
      const Artifact::Argument& argument = artifact->arguments[a];
      if (a < inputs.size()) {
        args.push_back(argument.pack.identity() ? inputs[a] : pack(inputs[a], argument.pack));
      } else {
        args.push_back(Tensor(argument.dtype, argument.shape));
        std::memset(args.back().data(), 0xff, static_cast<size_t>(args.back().bytes()));
      }
      pointers.push_back(args.back().data());
    }
    const Tensor workspace(DType::kInt8, {std::max<int64_t>(artifact->workspace_bytes, 1)});
    PrunerPool pool{run_serially, 1};
    (*kernel)->entry()(pointers.data(), const_cast<void*>(workspace.data()), &pool);
    for (size_t o = 0; o < expected.size(); ++o) {
      for (int64_t e = 0; e < expected[o].num_elements(); ++e) {
        ASSERT_NEAR(args[inputs.size() + o].get(e),
                    expected[o].get(e),
                    1e-4 * (1 + std::abs(expected[o].get(e))))
            << "element " << e << "\n"
            << what << "\n"
            << print(*program);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Candidates,
                         EveryOperator,
                         testing::Combine(testing::ValuesIn(kSmallOperators),
                                          testing::Values("x86-64-v4", "x86-64-v3")));

}  // namespace
}  // namespace pruner
