#include "lower/lower.h"

#include <gtest/gtest.h>

#include "space/operator_task.h"
#include "tensor/interpreter.h"

namespace pruner {
namespace {

class EveryOperator : public testing::TestWithParam<const char*> {};

// The meaning of loop IR is that of the DAG, candidate by candidate: no backend is involved.
TEST_P(EveryOperator, LowersToProgramsThatComputeWhatTheDagDoes) {
  const Task task = operator_task(GetParam());
  const Space space = make_space(task);
  Rng rng(7);
  const std::vector<Tensor> inputs = random_inputs(task.dag, rng);
  const std::vector<Tensor> expected = interpret(task.dag, inputs);
  for (int i = 0; i < 6; ++i) {
    const Candidate candidate = sample(space, rng);
    const Result<Program> program = lower(space, candidate, "k");
    ASSERT_TRUE(program.ok()) << program.error().message();
    const Result<Unit> sound = verify(*program);
    ASSERT_TRUE(sound.ok()) << sound.error().message() << "\n" << print(*program);
    std::vector<Tensor> args;
    for (size_t a = 0; a < program->args.size(); ++a) {
      const Buffer& buffer = (*program)[program->args[a]];
      if (a >= inputs.size()) {
        args.push_back(Tensor(buffer.dtype, buffer.shape));
      } else {
        args.push_back(buffer.pack.identity() ? inputs[a] : pack(inputs[a], buffer.pack));
      }
    }
    const Result<Unit> ran = interpret(*program, args);
    ASSERT_TRUE(ran.ok()) << ran.error().message() << "\n"
                          << print(space, candidate) << "\n"
                          << print(*program);
    for (size_t o = 0; o < expected.size(); ++o) {
      for (int64_t e = 0; e < expected[o].num_elements(); ++e) {
        ASSERT_NEAR(args[inputs.size() + o].get(e),
                    expected[o].get(e),
                    1e-4 * (1 + std::abs(expected[o].get(e))))
            << "element " << e << "\n"
            << print(space, candidate) << "\n"
            << print(*program);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Lower, EveryOperator, testing::ValuesIn(kSmallOperators));

}  // namespace
}  // namespace pruner
