// label: cuda-fake
// GPUs of CUDA and NVML as measuring sees them, on the fake driver.
#include <map>

#include "fakes/driver_log.h"
#include "fakes/fake_cuda.h"
#include "golden.h"
#include "loaded_program.h"
#include "lower/gpu_programs.h"
#include "runtime/nvml.h"

namespace pruner {
namespace {

Artifact row_sums() {
  return *compile(gpu_row_sums(4, 64, 32), *parse_target("cuda --arch=sm_80", 0), "kernel");
}

/// Does with a device what measuring does, from the list of devices to the time of a program.
Result<double> measure(const Artifact& artifact) {
  TRY_ASSIGN(const auto devices, list_gpus(Backend::kCuda));
  TRY_ASSIGN(const auto context, GpuContext::open(Backend::kCuda, 0));
  TRY_ASSIGN(GpuProgram program, context->load(artifact));
  TRY_ASSIGN(GpuBuffer x, context->allocate(4 * 64 * sizeof(float)));
  TRY_ASSIGN(GpuBuffer y, context->allocate(4 * sizeof(float)));
  TRY_ASSIGN(GpuBuffer workspace, context->allocate(1));
  TRY_ASSIGN(GpuBuffer flushed, context->allocate(1 << 20));
  const std::vector<float> ones(4 * 64, 1.0f);
  std::vector<float> sums(4);
  TRY(x.write(ones.data()));
  TRY(y.fill(std::byte{0xff}));
  GpuBuffer* const buffers[] = {&x, &y, &workspace};
  TRY_ASSIGN(const double seconds, program.run(buffers, 3));
  TRY_ASSIGN(const double cold_s, program.run(buffers, 2, &flushed));
  EXPECT_GT(cold_s, 0);
  TRY(y.read(sums.data()));
  EXPECT_EQ(sums, std::vector<float>(4, 64));
  return seconds;
}

TEST(FakeCudaContext, TimesAProgramAndLeavesNothing) {
  const FakeCuda cuda;
  const Result<double> seconds = measure(row_sums());
  ASSERT_TRUE(seconds.ok()) << seconds.error().message();
  EXPECT_GT(*seconds, 0);
  EXPECT_LT(*seconds, 1);
  EXPECT_EQ(cuda.end(), "");
}

TEST(FakeCudaContext, RunsOnEachListOfBuffersInTurn) {
  const FakeCuda cuda;
  const auto context = GpuContext::open(Backend::kCuda, 0);
  ASSERT_TRUE(context.ok());
  {
    Result<GpuProgram> program = (*context)->load(row_sums());
    ASSERT_TRUE(program.ok());
    std::vector<GpuBuffer> made;
    std::vector<std::vector<GpuBuffer*>> turns;
    made.reserve(9);
    for (int turn = 0; turn < 3; ++turn) {
      const std::vector<float> content(4 * 64, static_cast<float>(turn + 1));
      for (const size_t bytes : {content.size() * sizeof(float), 4 * sizeof(float), size_t{1}})
        made.push_back(*(*context)->allocate(static_cast<int64_t>(bytes)));
      GpuBuffer* const of_turn = &made[made.size() - 3];
      ASSERT_TRUE(of_turn->write(content.data()).ok());
      turns.push_back({of_turn, of_turn + 1, of_turn + 2});
    }
    for (const int64_t times : {1, 8}) {  // launched one by one, and recorded
      for (const auto& buffers : turns) ASSERT_TRUE(buffers[1]->fill(std::byte{0xff}).ok());
      const Result<double> seconds = program->run_in_turns(turns, times);
      ASSERT_TRUE(seconds.ok()) << seconds.error().message();
      EXPECT_GT(*seconds, 0);
      for (size_t turn = 0; turn < 3; ++turn) {
        std::vector<float> sums(4);
        ASSERT_TRUE(turns[turn][1]->read(sums.data()).ok());
        EXPECT_EQ(sums, std::vector<float>(4, 64 * static_cast<float>(turn + 1))) << times;
      }
    }
  }
  EXPECT_EQ(cuda.lines("VIOLATION"), "");
}

TEST(FakeCudaContext, ListsDevices) {
  const FakeCuda cuda("devices=2,arch=80+90");
  const auto devices = list_gpus(Backend::kCuda);
  ASSERT_TRUE(devices.ok()) << devices.error().message();
  ASSERT_EQ(devices->size(), 2u);
  EXPECT_STREQ((*devices)[1].arch, "sm_90");
  EXPECT_STREQ((*devices)[1].bus, "0000:02:00.0");
  EXPECT_EQ((*devices)[0].units, 108);
}

// Each call fails, the first and the last time that it is made.
TEST(FakeCudaContext, GivesTheLimitsOfTheDevice) {
  const FakeCuda cuda("arch=86");
  GpuFacts facts = list_gpus(Backend::kCuda)->front();
  facts.most_shared_bytes -= 1024;
  const Result<Gpu> gpu = with_facts(Gpu{}, facts);
  ASSERT_TRUE(gpu.ok()) << gpu.error().message();
  EXPECT_EQ(gpu->arch, "sm_86");
  EXPECT_EQ(gpu->most_shared_bytes_per_block, 98 << 10) << "the driver's, not the table's";
  EXPECT_EQ(gpu->tensor_rates.s8, 2048);
}

TEST(FakeCudaContext, SaysWhatFailedAndLeavesNothing) {
  const Artifact artifact = row_sums();
  std::map<std::string, int> calls;
  {
    const FakeCuda cuda;
    ASSERT_TRUE(measure(artifact).ok());
    calls = driver_calls(cuda.log());
  }
  EXPECT_GT(calls.size(), 15u);
  for (const auto& [function, count] : calls) {
    for (const int call : {1, count}) {
      for (const int status : {2, 700}) {
        const std::string rule =
            function + "@" + std::to_string(call) + "=" + std::to_string(status);
        SCOPED_TRACE(rule);
        const FakeCuda cuda(rule);
        const Result<double> seconds = measure(artifact);
        if (may_fail(function, call)) continue;
        EXPECT_EQ(cuda.end(), "") << cuda.log();
        EXPECT_FALSE(seconds.ok());
        if (!seconds.ok()) {
          EXPECT_TRUE(names(seconds.error().message(), function)) << seconds.error().message();
        }
      }
    }
  }
}

TEST(FakeCudaContext, IsLostAfterABadAccess) {
  const FakeCuda cuda;
  Artifact artifact = row_sums();
  const auto context = GpuContext::open(Backend::kCuda, 0);
  ASSERT_TRUE(context.ok()) << context.error().message();
  Result<GpuProgram> program = (*context)->load(artifact);
  ASSERT_TRUE(program.ok()) << program.error().message();
  Result<GpuBuffer> x = (*context)->allocate(16), y = (*context)->allocate(16);
  ASSERT_TRUE(x.ok() && y.ok());
  GpuBuffer* const buffers[] = {&*x, &*y, &*x};
  EXPECT_FALSE((*context)->lost());
  EXPECT_ERROR(program->run(buffers, 1), "illegal memory access was encountered (700)");
  EXPECT_TRUE((*context)->lost());
  EXPECT_NE(cuda.lines("VIOLATION kernel_0: an access that is not allowed"), "");
}

TEST(FakeNvml, IsAskedForClocksAndProcesses) {
  const FakeCuda cuda("throttle=1,busy");
  const auto hot = read_gpu_clocks("0000:01:00.0"), cold = read_gpu_clocks("0000:01:00.0");
  ASSERT_TRUE(hot && cold);
  EXPECT_TRUE(hot->throttled);
  EXPECT_FALSE(cold->throttled);
  EXPECT_EQ(cold->sm_mhz, 1410);
  EXPECT_EQ(processes_on_gpu("0000:01:00.0"), (std::vector<pid_t>{getpid(), 1}));
  EXPECT_FALSE(read_gpu_clocks("0000:05:00.0"));
}

}  // namespace
}  // namespace pruner
