// label: codegen
// Real candidates through the real compiler, linker and runner.
#include <gtest/gtest.h>

#include "measure/build_worker.h"
#include "measure/runner.h"
#include "tensor/operators.h"

namespace pruner {
namespace {

Result<std::unique_ptr<LoadedKernel>> load(const Artifact& artifact) {
  return load_kernel(artifact.object, artifact.symbol);
}

class PipelineTest : public testing::TestWithParam<const char*> {};

TEST_P(PipelineTest, SampledCandidatesAreBuiltCheckedAndTimed) {
  Result<ComputeDag> dag = parse_operator(GetParam());
  ASSERT_TRUE(dag.ok()) << dag.error().message();
  const Task task = make_task(*std::move(dag), host_target(2), GetParam());
  const Space space = make_space(task);
  Runner runner(load);
  MeasureOptions options;
  options.time_budget_s = 0.01;
  runner.set_options(options);
  const Result<Unit> set = runner.set_task(task);
  ASSERT_TRUE(set.ok()) << set.error().message();
  Rng rng(1);
  int measured = 0;
  while (measured < 6) {
    const Candidate candidate = sample(space, rng);
    if (!is_legal(space, candidate)) continue;
    ++measured;
    const Build built = build(space, candidate);
    ASSERT_EQ(built.error, MeasureError::kNone) << print(space, candidate) << built.error_text;
    EXPECT_GT(built.build_s, 0);
    const MeasureResult result = runner.run(built.artifact, kFailedCost);
    ASSERT_TRUE(result.ok()) << print(space, candidate) << ": " << result.error_text;
  }
}

INSTANTIATE_TEST_SUITE_P(Operators,
                         PipelineTest,
                         testing::Values("matmul 63 65 129",
                                         "dense 8 100 64 +bias +relu",
                                         "conv2d 1 32 14 14 16 3 3 padding=1 +bias +relu",
                                         "dense 37 100 80 bits=16 exponent=8 +bias +gelu",
                                         "dense 16 48 2080 bits=8 +bias +relu",
                                         "conv2d 1 16 7 7 32 3 3 padding=1 bits=16 exponent=8 "
                                         "+bias +residual +relu",
                                         "conv2d 1 40 8 8 32 3 3 padding=1 bits=8 +relu",
                                         "softmax 10 100"));

TEST(Pipeline, EveryFormOfAConvolutionPassesTheCheck) {
  const Task task = make_task(
      *parse_operator("conv2d 1 48 7 7 256 3 3 padding=1 +bias +relu"), host_target(2), "conv2d");
  Runner runner(load);
  MeasureOptions options;
  options.time_budget_s = 0.01;
  runner.set_options(options);
  ASSERT_TRUE(runner.set_task(task).ok());
  Rng rng(2);
  for (const std::string form : {"direct", "winograd-2x2", "winograd-4x4"}) {
    const Space space = make_space(task, std::vector<std::string>{form});
    for (int i = 0; i < 3; ++i) {
      const Candidate candidate = sample(space, rng);
      ASSERT_EQ(space[candidate.sketch].form, form);
      const Build built = build(space, candidate);
      ASSERT_EQ(built.error, MeasureError::kNone) << print(space, candidate) << built.error_text;
      const MeasureResult result = runner.run(built.artifact, kFailedCost);
      ASSERT_TRUE(result.ok()) << print(space, candidate) << ": " << result.error_text;
    }
  }
}

TEST(Build, RefusesACandidateThatIsNotLegal) {
  const Task task = make_task(*parse_operator("matmul 64 64 64"), host_target(1), "matmul");
  const Space space = make_space(task);
  for (const Candidate& candidate : {Candidate{SketchId{99}, {}}, Candidate{SketchId{0}, {1, 2}}}) {
    const Build built = build(space, candidate);
    EXPECT_EQ(built.error, MeasureError::kInstantiation);
    EXPECT_NE(built.error_text.find("not a legal candidate"), std::string::npos);
  }
}

}  // namespace
}  // namespace pruner
