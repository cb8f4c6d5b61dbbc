#include "runtime/nvml.h"

#include <algorithm>

#include "runtime/module/gpu_driver.h"

namespace pruner {
namespace {

// The used part of NVML's C interface, by its documentation. A status that is not 0 is an error.
using Status = int;
using Device = void*;
// nvmlProcessInfo_t, as the _v3 call below fills it.
struct Process {
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};
struct Nvml {
  Status (*init)();
  Status (*device)(const char* bus, Device* device);
  Status (*clock)(Device device, int which, unsigned* mhz);
  Status (*reasons)(Device device, unsigned long long* reasons);
  Status (*processes)(Device device, unsigned* count, Process* processes);
};
// In the order of the members.
constexpr const char* kCalls[] = {"nvmlInit_v2",
                                  "nvmlDeviceGetHandleByPciBusId_v2",
                                  "nvmlDeviceGetClockInfo",
                                  "nvmlDeviceGetCurrentClocksThrottleReasons",
                                  "nvmlDeviceGetComputeRunningProcesses_v3"};
static_assert(sizeof(Nvml) == sizeof kCalls);

constexpr int kSmClock = 1, kMemoryClock = 2;  // nvmlClockType_t
// Hardware slowdown, thermal slowdown by software and by hardware, power brake.
constexpr unsigned long long kSlowedDown = 0x8 | 0x20 | 0x40 | 0x80;
constexpr unsigned kMostProcesses = 64;  // with more the call fails, and none are told

std::optional<Nvml> open_nvml() {
  Nvml nvml;
  const int calls = static_cast<int>(std::size(kCalls));
  if (pruner_open_library("libnvidia-ml.so.1", "", kCalls, calls, &nvml) == 0) return std::nullopt;
  if (nvml.init() != 0) return std::nullopt;
  return nvml;
}

// Returns NVML's functions. A library that is loaded stays loaded.
const std::optional<Nvml>& nvml() {
  static const std::optional<Nvml> opened = open_nvml();
  return opened;
}

std::optional<Device> find_device(const std::string& bus) {
  Device device = nullptr;
  if (bus.empty() || !nvml() || nvml()->device(bus.c_str(), &device) != 0) return std::nullopt;
  return device;
}

}  // namespace

std::optional<GpuClocks> read_gpu_clocks(const std::string& bus) {
  const std::optional<Device> device = find_device(bus);
  unsigned sm = 0, memory = 0;
  if (!device || nvml()->clock(*device, kSmClock, &sm) != 0 ||
      nvml()->clock(*device, kMemoryClock, &memory) != 0) {
    return std::nullopt;
  }
  unsigned long long reasons = 0;
  nvml()->reasons(*device, &reasons);  // not every GPU tells
  return GpuClocks{static_cast<int>(sm), static_cast<int>(memory), (reasons & kSlowedDown) != 0};
}

std::vector<pid_t> processes_on_gpu(const std::string& bus) {
  const std::optional<Device> device = find_device(bus);
  Process found[kMostProcesses];
  // In: the room; out: how many there are.
  unsigned count = kMostProcesses;
  if (!device || nvml()->processes(*device, &count, found) != 0) return {};
  std::vector<pid_t> pids;
  for (unsigned i = 0; i < std::min(count, kMostProcesses); ++i)
    pids.push_back(static_cast<pid_t>(found[i].pid));
  return pids;
}

}  // namespace pruner
