// label: device
// Candidates through the build worker and the runner to this machine's OpenCL device.
#include "measure/device_runner.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "golden.h"
#include "measure/build_worker.h"
#include "tensor/operators.h"

namespace pruner {
namespace {

Task opencl_task(const std::string& op) {
  return make_task(*parse_operator(op), *parse_target("opencl", 0), op);
}

Build build_some(const Task& task) {
  const Space space = make_space(task);
  Rng rng(1);
  Candidate candidate = sample(space, rng);
  while (!is_legal(space, candidate)) candidate = sample(space, rng);
  return build(space, candidate);
}

class DeviceRunTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    setenv("POCL_CACHE_DIR", testing::TempDir().c_str(), 1);
    const auto devices = list_gpus(Backend::kOpenCl);
    if (!devices.ok()) GTEST_SKIP() << devices.error().message();
  }

  static std::unique_ptr<DeviceRunner> runner(const Task& task, bool flush_l2 = false) {
    Result<std::unique_ptr<DeviceRunner>> runner = DeviceRunner::open(Backend::kOpenCl, 0);
    EXPECT_TRUE(runner.ok()) << runner.error().message();
    MeasureOptions options;
    options.time_budget_s = 0.01;
    options.flush_l2 = flush_l2;
    (*runner)->set_options(options);
    EXPECT_TRUE((*runner)->set_task(task).ok());
    return *std::move(runner);
  }
};

TEST_P(DeviceRunTest, SampledCandidatesAreBuiltCheckedAndTimed) {
  const Task task = opencl_task(GetParam());
  const Space space = make_space(task);
  const std::unique_ptr<DeviceRunner> runner = this->runner(task);
  Rng rng(1);
  for (int measured = 0; measured < 4;) {
    const Candidate candidate = sample(space, rng);
    if (!is_legal(space, candidate)) continue;
    ++measured;
    const Build built = build(space, candidate);
    ASSERT_EQ(built.error, MeasureError::kNone) << print(space, candidate) << built.error_text;
    const MeasureResult result = runner->run(built.artifact, kFailedCost);
    ASSERT_TRUE(result.ok()) << print(space, candidate) << ": " << result.error_text;
    EXPECT_GT(result.cost_s(), 0);
    EXPECT_LT(result.cost_s(), 10);
  }
}

INSTANTIATE_TEST_SUITE_P(Operators,
                         DeviceRunTest,
                         testing::Values("matmul 64 64 64",
                                         "matmul 33 65 47",
                                         "conv2d 1 8 14 14 16 3 3 padding=1 +bias +relu",
                                         "softmax 10 100"));

class DeviceRunFaults : public DeviceRunTest {};

TEST_P(DeviceRunFaults, AreResults) {
  const Task task = opencl_task("matmul 64 64 64");
  const std::unique_ptr<DeviceRunner> runner = this->runner(task);
  const Build built = build_some(task);
  ASSERT_EQ(built.error, MeasureError::kNone) << built.error_text;

  Artifact broken = built.artifact;
  broken.object = "__kernel void kernel_0() { nothing = 1; }";
  MeasureResult result = runner->run(broken, kFailedCost);
  EXPECT_EQ(result.error, MeasureError::kCompileDevice) << result.error_text;

  Artifact lazy = built.artifact;
  lazy.object =
      "__kernel void kernel_0(__global const float* a, __global const float* b, __global float* c) "
      "{ c[get_global_id(0)] = 0; }";
  result = runner->run(lazy, kFailedCost);
  EXPECT_EQ(result.error, MeasureError::kWrongAnswer) << result.error_text;

  // And the next one runs normally.
  result = runner->run(built.artifact, kFailedCost);
  EXPECT_TRUE(result.ok()) << result.error_text;
  EXPECT_FALSE(runner->lost());
}

TEST_P(DeviceRunFaults, ACacheIsEmptiedBeforeEachCall) {
  const Task task = opencl_task("softmax 10 100");
  const std::unique_ptr<DeviceRunner> runner = this->runner(task, true);
  const Build built = build_some(task);
  ASSERT_EQ(built.error, MeasureError::kNone) << built.error_text;
  const MeasureResult result = runner->run(built.artifact, kFailedCost);
  ASSERT_TRUE(result.ok()) << result.error_text;
  EXPECT_GT(result.cost_s(), 0);
}

// One runner goes from task to task, as a worker does.
TEST_P(DeviceRunFaults, EachTaskHasItsOwnInputs) {
  const std::unique_ptr<DeviceRunner> runner = this->runner(opencl_task("matmul 64 64 64"));
  for (const char* op : {"softmax 10 100", "matmul 33 65 47"}) {
    const Task task = opencl_task(op);
    ASSERT_TRUE(runner->set_task(task).ok());
    const Build built = build_some(task);
    ASSERT_EQ(built.error, MeasureError::kNone) << built.error_text;
    const MeasureResult result = runner->run(built.artifact, kFailedCost);
    EXPECT_TRUE(result.ok()) << op << ": " << result.error_text;
  }
}

INSTANTIATE_TEST_SUITE_P(Runner, DeviceRunFaults, testing::Values(""));

}  // namespace
}  // namespace pruner
