// label: cuda-fake
// The measurer on CUDA's devices as a fake driver has them: what it asks of the driver, and what
// becomes of a batch when any of it fails.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "fakes/fake_cuda.h"
#include "golden.h"
#include "measure/build_worker.h"
#include "measure/device_probe.h"
#include "measure/local_measurer.h"
#include "runtime/gpu_context.h"
#include "space/some_candidates.h"
#include "target/tensor_rates.h"
#include "tensor/operators.h"

namespace pruner {
namespace {

Task cuda_task(const std::string& op = "matmul 16 16 16") {
  return make_task(*parse_operator(op), *parse_target("cuda --arch=sm_80", 0), op);
}

MeasureOptions quick() {
  MeasureOptions options;
  options.build_timeout_s = 60;  // a C++ compiler stands for NVRTC
  options.time_budget_s = 0.005;
  options.check_elements = 32;
  return options;
}

struct Measured {
  Result<std::vector<MeasureResult>> results = Error("not measured");
  std::vector<MeasureResult> failed = {};
};

Measured measure_some(size_t count,
                      const MeasureOptions& options = quick(),
                      const Task& task = cuda_task()) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  Result<std::unique_ptr<LocalMeasurer>> measurer = LocalMeasurer::make(options, program);
  EXPECT_TRUE(measurer.ok()) << measurer.error().message();
  Measured measured;
  measured.results = (*measurer)->measure(task, some_candidates(task, count), kFailedCost);
  if (!measured.results.ok()) return measured;
  EXPECT_EQ(measured.results->size(), count);
  for (const MeasureResult& result : *measured.results) {
    if (!result.ok()) measured.failed.push_back(result);
  }
  return measured;
}

/// The fake driver, failing so in the first process whose turn it is.
class FailsOnce : public FakeCuda {
 public:
  explicit FailsOnce(const std::string& settings) : FakeCuda(settings) {
    setenv("FAKE_CUDA_ONCE", path("once").c_str(), 1);
  }
  ~FailsOnce() { unsetenv("FAKE_CUDA_ONCE"); }
};

TEST(CudaMeasurer, MeasuresABatchWithTheDevicesClocks) {
  const FakeCuda driver("arch=80");
  const Measured measured = measure_some(4);
  ASSERT_TRUE(measured.results.ok()) << measured.results.error().message();
  for (const MeasureResult& result : *measured.results) {
    ASSERT_TRUE(result.ok()) << result.error_text;
    EXPECT_GT(result.cost_s(), 0);
    ASSERT_TRUE(result.clocks.has_value());
    EXPECT_GT(result.clocks->sm_mhz, 0);
    EXPECT_FALSE(result.clocks->throttled);
  }
  EXPECT_EQ(driver.lines("VIOLATION"), "");
}

TEST(CudaMeasurer, OneWorkerHasTheContextOfAllCandidates) {
  const FakeCuda driver("arch=80");
  ASSERT_TRUE(measure_some(4).failed.empty());
  const std::string contexts = driver.lines("cuDevicePrimaryCtxRetain");
  EXPECT_EQ(std::ranges::count(contexts, '\n'), 1) << contexts;
}

TEST(CudaMeasurer, ASpoiltContextIsReplacedAndTheOthersGoOn) {
  const FailsOnce driver("arch=80,cuStreamSynchronize@8=700");
  const Measured measured = measure_some(5);
  ASSERT_TRUE(measured.results.ok()) << measured.results.error().message();
  ASSERT_EQ(measured.failed.size(), 1u);
  EXPECT_EQ(measured.failed[0].error, MeasureError::kRuntimeDevice);
  EXPECT_NE(measured.failed[0].error_text.find("illegal"), std::string::npos)
      << measured.failed[0].error_text;
  const std::string contexts = driver.lines("cuDevicePrimaryCtxRetain");
  EXPECT_EQ(std::ranges::count(contexts, '\n'), 2) << contexts;
}

TEST(CudaMeasurer, ACandidateThatHangsIsKilledAndTheOthersGoOn) {
  const FailsOnce driver("arch=80,cuModuleLoadData@2=hang");
  MeasureOptions options = quick();
  options.run_timeout_s = 1;
  const Measured measured = measure_some(4, options);
  ASSERT_TRUE(measured.results.ok()) << measured.results.error().message();
  ASSERT_EQ(measured.failed.size(), 1u);
  EXPECT_EQ(measured.failed[0].error, MeasureError::kRunTimeout);
  EXPECT_NE(measured.failed[0].error_text.find("still running after 1 s"), std::string::npos)
      << measured.failed[0].error_text;
}

TEST(CudaMeasurer, AWorkerThatDiesOnceIsNoCandidatesFault) {
  const FailsOnce driver("arch=80,cuLaunchKernel@3=exit");
  const Measured measured = measure_some(3);
  ASSERT_TRUE(measured.results.ok()) << measured.results.error().message();
  EXPECT_TRUE(measured.failed.empty());
}

TEST(CudaMeasurer, ACandidateThatKillsItsWorkersHasFailed) {
  const FakeCuda driver("arch=80,cuLaunchKernel@1=exit");
  const Measured measured = measure_some(2);
  ASSERT_TRUE(measured.results.ok()) << measured.results.error().message();
  ASSERT_EQ(measured.failed.size(), 2u);
  EXPECT_EQ(measured.failed[0].error, MeasureError::kRuntimeDevice);
  EXPECT_EQ(measured.failed[0].error_text, "its runner ended: SIGKILL");
}

TEST(CudaMeasurer, ADeviceThatIsGoneIsNoCandidatesFault) {
  const FakeCuda driver("arch=80,cuDevicePrimaryCtxRetain@*=999");
  EXPECT_ERROR(measure_some(3).results, "CUDA: cuDevicePrimaryCtxRetain: ");
}

TEST(CudaMeasurer, TimesAgainWhatTheDeviceDidWhileSlowedDown) {
  const FakeCuda driver("arch=80,throttle=3");
  const Measured measured = measure_some(1);
  ASSERT_TRUE(measured.results.ok()) << measured.results.error().message();
  ASSERT_TRUE(measured.failed.empty());
  EXPECT_FALSE(measured.results->front().clocks->throttled);
}

TEST(CudaMeasurer, SaysSoWhereTheDeviceStaysSlowedDown) {
  const FakeCuda driver("arch=80,throttle=1000");
  const Measured measured = measure_some(1);
  ASSERT_TRUE(measured.results.ok()) << measured.results.error().message();
  ASSERT_TRUE(measured.failed.empty());
  EXPECT_TRUE(measured.results->front().clocks->throttled);
}

TEST(CudaMeasurer, EmptiesTheCacheWhereThatIsAskedFor) {
  const FakeCuda driver("arch=80");
  MeasureOptions options = quick();
  options.flush_l2 = true;
  EXPECT_TRUE(measure_some(1, options).failed.empty());
  const int64_t l2_bytes = list_gpus(Backend::kCuda)->front().l2_bytes;
  EXPECT_NE(driver.lines("cuMemsetD8Async").find(std::to_string(2 * l2_bytes)), std::string::npos)
      << driver.lines("cuMemsetD8Async");
}

// Copies of 512 KB, so many that they exceed twice the second-level cache of an A100.
TEST(CudaMeasurer, TakesTurnsWithCopiesOfConstantsThatComeFromMemory) {
  const Task task = cuda_task("dense 2 256 512");
  const auto allocations = [&](WeightsFrom from) {
    const FakeCuda driver("arch=80");
    MeasureOptions options = quick();
    options.weights_from = from;
    const Measured measured = measure_some(2, options, task);  // both share the copies
    EXPECT_TRUE(measured.results.ok() && measured.failed.empty());
    EXPECT_EQ(driver.lines("VIOLATION"), "");
    const std::string lines = driver.lines("cuMemAlloc");
    return std::ranges::count(lines, '\n');
  };
  const int64_t l2_bytes = 40 << 20;
  EXPECT_EQ(allocations(WeightsFrom::kMemory) - allocations(WeightsFrom::kLastLevel),
            2 * l2_bytes / (256 * 512 * 4) - 1);
}

TEST(CudaMeasurer, SaysWhatTheDeviceHasNoMemoryFor) {
  const FakeCuda driver("arch=80,memory=1500");
  const Measured measured = measure_some(1);
  ASSERT_TRUE(measured.results.ok()) << measured.results.error().message();
  ASSERT_EQ(measured.failed.size(), 1u);
  EXPECT_NE(measured.failed[0].error_text.find("bytes of memory left"), std::string::npos)
      << measured.failed[0].error_text;
}

TEST(CudaMeasurer, TellsWhichCodeRunsWhere) {
  const FakeCuda driver("arch=80+90,devices=2");
  const Target target = *parse_target("cuda --arch=sm_80", 0);
  const int both[] = {0, 1}, third[] = {2};
  EXPECT_TRUE(check_measurable(target).ok());
  EXPECT_ERROR(check_measurable(target, both), "is sm_90, code for sm_80 does not run on it");
  EXPECT_ERROR(check_measurable(target, third),
               "there is no device cuda:2, the last one is cuda:1");
}

TEST(CudaMeasurer, ProbesADevice) {
  const FakeCuda driver("arch=86");
  const Result<Target> probed = probe_device(*parse_target("cuda", 0), 0.01);
  ASSERT_TRUE(probed.ok()) << probed.error().message();
  EXPECT_EQ(probed->gpu.arch, "sm_86");
  for (const double rate : {probed->gpu.peak_flops,
                            probed->gpu.dram_bandwidth,
                            probed->gpu.l2_bandwidth,
                            probed->gpu.shared_bandwidth,
                            probed->gpu.launch_s}) {
    EXPECT_GT(rate, 0);
  }
  EXPECT_EQ(probed->gpu.most_shared_bytes_per_block, 99 << 10);
  for (const TensorRateRow& row : kTensorRates)
    EXPECT_EQ(probed->gpu.tensor_rates.*row.rate > 1, row.is_on(86)) << row.name;
  EXPECT_NE(probed->source.find("CUDA"), std::string::npos) << probed->source;
  EXPECT_EQ(driver.end(), "");
}

// Groups of warps multiply on Hopper alone.
TEST(CudaMeasurer, ProbesTheRatesOfGroups) {
  const FakeCuda driver("arch=90");
  const Result<Target> probed = probe_device(*parse_target("cuda", 0), 0.01);
  ASSERT_TRUE(probed.ok()) << probed.error().message();
  for (const TensorRateRow& row : kTensorRates)
    EXPECT_GT(probed->gpu.tensor_rates.*row.rate, 1) << row.name;
  EXPECT_EQ(driver.end(), "");
}

/// Functions of the driver that a run without faults calls.
std::set<std::string> functions_called() {
  const FakeCuda driver("arch=80");
  EXPECT_TRUE(measure_some(1).failed.empty());
  std::set<std::string> names;
  std::istringstream log(driver.log());
  for (std::string line; std::getline(log, line);) {
    if (line.starts_with("cu")) names.insert(line.substr(0, line.find(' ')));
  }
  return names;
}

// Any call may fail, with an error that passes and with one that stays: the batch ends with results
// that say so, or with an error that does.
TEST(CudaMeasurer, AnyCallMayFail) {
  const std::set<std::string> names = functions_called();
  EXPECT_GT(names.size(), 15u);
  for (const std::string& name : names) {
    for (const char* status : {"1", "719"}) {
      SCOPED_TRACE(name + " gives " + status);
      const FailsOnce driver("arch=80," + name + "@1=" + status);
      const Measured measured = measure_some(1);
      if (!measured.results.ok()) {
        EXPECT_NE(measured.results.error().message(), "");
        continue;
      }
      for (const MeasureResult& result : measured.failed) EXPECT_NE(result.error_text, "");
      EXPECT_EQ(driver.lines("VIOLATION"), "");
    }
  }
}

}  // namespace
}  // namespace pruner
