// label: cuda-fake
// This machine's measurer on several devices of a fake driver.
#include "fleet/own_workers.h"

#include <algorithm>
#include <map>

#include "fakes/fake_cuda.h"
#include "golden.h"
#include "space/some_candidates.h"
#include "tensor/operators.h"

namespace pruner {
namespace {

constexpr int kBoth[] = {0, 1};

Task cuda_task() {
  const std::string op = "matmul 16 16 16";
  return make_task(*parse_operator(op), *parse_target("cuda --arch=sm_80", 0), op);
}

std::unique_ptr<Measurer> make_measurer(const Task& task, std::span<const int> devices) {
  MeasureOptions options;
  options.build_timeout_s = 60;  // a C++ compiler stands for NVRTC
  options.time_budget_s = 0.005;
  options.check_elements = 32;
  Result<std::unique_ptr<Measurer>> made =
      measure_here(task.target, devices, options, PRUNER_BINARY);
  EXPECT_TRUE(made.ok());
  return *std::move(made);
}

/// The fake driver, failing so in the first process whose turn it is.
class FailsOnce : public FakeCuda {
 public:
  explicit FailsOnce(const std::string& settings) : FakeCuda(settings) {
    setenv("FAKE_CUDA_ONCE", path("once").c_str(), 1);
  }
  ~FailsOnce() { unsetenv("FAKE_CUDA_ONCE"); }
};

size_t contexts(const FakeCuda& driver) {
  return static_cast<size_t>(std::ranges::count(driver.lines("cuDevicePrimaryCtxRetain"), '\n'));
}

TEST(OwnWorkers, SeveralDevicesShareABatch) {
  const FakeCuda driver("arch=80,devices=2");
  const Task task = cuda_task();
  const std::unique_ptr<Measurer> measurer = make_measurer(task, kBoth);
  const auto results = measurer->measure(task, some_candidates(task, 6), kFailedCost);
  ASSERT_TRUE(results.ok()) << results.error().message();
  ASSERT_EQ(results->size(), 6u);
  std::map<int, int> runs;  // key: worker
  for (const MeasureResult& result : *results) {
    EXPECT_TRUE(result.ok()) << result.error_text;
    ++runs[result.running.worker];
  }
  EXPECT_EQ(runs.size(), 2u);
  EXPECT_EQ(contexts(driver), 2u);
  EXPECT_GT(measurer->times().run_s, 0);
}

TEST(OwnWorkers, OthersGoOnWhenADeviceIsGone) {
  const FailsOnce driver("arch=80,devices=2,cuDevicePrimaryCtxRetain@1=2");
  const Task task = cuda_task();
  const std::unique_ptr<Measurer> measurer = make_measurer(task, kBoth);
  for (const size_t count : {6, 4}) {
    const auto results = measurer->measure(task, some_candidates(task, count), kFailedCost);
    ASSERT_TRUE(results.ok()) << results.error().message();
    EXPECT_EQ(results->size(), count);
    for (const MeasureResult& result : *results) EXPECT_TRUE(result.ok()) << result.error_text;
    ASSERT_TRUE(measurer->recorded(*results).ok());
  }
}

TEST(OwnWorkers, WithoutADeviceLeftThereIsAnError) {
  const FakeCuda driver("arch=80,devices=2,cuDevicePrimaryCtxRetain@*=999");
  const Task task = cuda_task();
  const std::unique_ptr<Measurer> measurer = make_measurer(task, kBoth);
  for (const size_t count : {3, 1}) {
    EXPECT_ERROR(measurer->measure(task, some_candidates(task, count), kFailedCost),
                 "CUDA: cuDevicePrimaryCtxRetain: ");
  }
}

TEST(OwnWorkers, WhoseRunIsStoppedMeasureNothingMore) {
  const FakeCuda driver("arch=80,devices=2");
  const Task task = cuda_task();
  MeasureOptions options;
  options.stop = [] { return true; };
  const auto measurer = measure_here(task.target, kBoth, options, PRUNER_BINARY);
  ASSERT_TRUE(measurer.ok());
  const auto results = (*measurer)->measure(task, some_candidates(task, 3), kFailedCost);
  ASSERT_TRUE(results.ok()) << results.error().message();
  EXPECT_TRUE(results->empty());
}

}  // namespace
}  // namespace pruner
