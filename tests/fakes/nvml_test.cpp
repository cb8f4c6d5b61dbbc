// label: cuda-fake
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "fakes/fake_cuda.h"

namespace pruner {
namespace {

template <typename... Args>
int nvml(const char* name, Args... args) {
  auto* const function = fake_function<int(Args...)>("libnvidia-ml.so.1", name);
  return function == nullptr ? -1 : function(args...);
}

TEST(FakeNvml, SaysWhatItIsTold) {
  const FakeCuda cuda("devices=2,throttle=2,busy");
  EXPECT_EQ(nvml("nvmlShutdown"), 1);
  ASSERT_EQ(nvml("nvmlInit_v2"), 0);
  void* device = nullptr;
  EXPECT_EQ(nvml("nvmlDeviceGetHandleByPciBusId_v2", "0000:09:00.0", &device), 6);
  ASSERT_EQ(nvml("nvmlDeviceGetHandleByPciBusId_v2", "0000:02:00.0", &device), 0);
  unsigned mhz = 0, most = 0;
  EXPECT_EQ(nvml("nvmlDeviceGetClockInfo", device, 1, &mhz), 0);
  EXPECT_EQ(nvml("nvmlDeviceGetMaxClockInfo", device, 1, &most), 0);
  EXPECT_EQ(mhz, most);
  unsigned long long reasons = 0;
  for (const unsigned long long expected : {0x40, 0x40, 0}) {
    EXPECT_EQ(nvml("nvmlDeviceGetCurrentClocksThrottleReasons", device, &reasons), 0);
    EXPECT_EQ(reasons, expected);
  }
  unsigned char processes[2 * 24];
  unsigned count = 0;
  void* const none = nullptr;
  EXPECT_EQ(nvml("nvmlDeviceGetComputeRunningProcesses_v3", device, &count, none), 7);
  EXPECT_EQ(count, 2u);
  void* const list = processes;
  EXPECT_EQ(nvml("nvmlDeviceGetComputeRunningProcesses_v3", device, &count, list), 0);
  EXPECT_EQ(*reinterpret_cast<unsigned*>(processes), static_cast<unsigned>(getpid()));
  EXPECT_EQ(nvml("nvmlShutdown"), 0);
}

}  // namespace
}  // namespace pruner
