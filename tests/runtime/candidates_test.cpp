// label: slow
// Candidates of every kind of operator on this machine's OpenCL device, held against the reference
// interpreter.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "lower/lower.h"
#include "runtime/opencl.h"
#include "space/operator_task.h"
#include "tensor/interpreter.h"

namespace pruner {
namespace {

class OpenClCandidates : public testing::TestWithParam<const char*> {};

TEST_P(OpenClCandidates, ComputeWhatTheDagDoes) {
  setenv("POCL_CACHE_DIR", testing::TempDir().c_str(), 1);
  const auto devices = list_opencl_devices();
  if (!devices.ok()) GTEST_SKIP() << devices.error().message();
  const Target target = *parse_target("opencl", 0);
  const Task task = operator_task(GetParam(), target);
  const Space space = make_space(task);
  Rng rng(11);
  const std::vector<Tensor> inputs = random_inputs(task.dag, rng);
  const std::vector<Tensor> expected = interpret(task.dag, inputs);
  Candidate candidate = sample(space, rng);
  while (!is_legal(space, candidate)) candidate = sample(space, rng);
  const Result<Program> program = lower(space, candidate, "k");
  ASSERT_TRUE(program.ok()) << program.error().message();
  const Result<Artifact> artifact = compile(*program, target, "k");
  ASSERT_TRUE(artifact.ok()) << artifact.error().message();
  const auto loaded = load_opencl(*artifact);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const PackSpec& spec = artifact->arguments[i].pack;
    const Tensor input = spec.identity() ? inputs[i] : pack(inputs[i], spec);
    ASSERT_TRUE((*loaded)->write_argument(static_cast<int>(i), input.data()).ok());
  }
  const Result<double> seconds = (*loaded)->run(1);
  ASSERT_TRUE(seconds.ok()) << seconds.error().message();
  for (size_t o = 0; o < expected.size(); ++o) {
    Tensor output(expected[o].dtype(), expected[o].shape());
    const int number = static_cast<int>(inputs.size() + o);
    ASSERT_TRUE((*loaded)->read_argument(number, output.data()).ok());
    for (int64_t e = 0; e < output.num_elements(); ++e) {
      const double want = expected[o].get(e);
      ASSERT_NEAR(output.get(e), want, 1e-4 * (1 + std::fabs(want))) << "element " << e << "\n"
                                                                     << print(space, candidate);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OpenCl, OpenClCandidates, testing::ValuesIn(kSmallOperators));

}  // namespace
}  // namespace pruner
