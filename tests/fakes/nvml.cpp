// libnvidia-ml.so.1: what NVIDIA's management library says of the fake devices.
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <mutex>

#include "rules.h"

namespace fakes {
namespace {

enum {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotFound = 6,
  kInsufficientSize = 7
};
constexpr unsigned long long kHardwareThermalSlowdown = 0x40;
constexpr unsigned kClocks_mhz[] = {1410, 1410, 1215, 1290};  // graphics, processors, memory, video

struct Process {  // nvmlProcessInfo_t
  unsigned pid;
  unsigned long long bytes;
  unsigned instance, compute_instance;
};
struct Utilization {  // nvmlUtilization_t
  unsigned gpu, memory;
};

struct State {
  std::mutex mutex;
  int initialized = 0;
} state;

char devices[16];  // their handles

bool is_device(const void* device) {
  const auto* const at = static_cast<const char*>(device);
  return at >= devices && at < devices + Rules::get().settings().devices;
}

template <typename Body>
int call(const char* name, bool needs_init, Body body) {
  std::unique_lock lock(state.mutex);
  const Fate fate = Rules::get().next(name);
  if (fate.kind == Fate::kHangs || fate.kind == Fate::kKills) {
    lock.unlock();
    end_in(fate, name);
  }
  int status = needs_init && state.initialized == 0 ? kUninitialized : kSuccess;
  if (fate.kind == Fate::kFails) status = fate.status;
  if (status == kSuccess) status = body();
  Rules::get().log(std::string(name) + " -> " + std::to_string(status));
  return status;
}

constexpr const char* kReasons = "nvmlDeviceGetCurrentClocksThrottleReasons";

/// Whether so few have asked that it still is.
bool is_hot() { return Rules::get().calls(kReasons) <= Rules::get().settings().throttled_reads; }

template <typename Body>
int of_device(const char* name, const void* device, Body body) {
  return call(name, true, [&]() -> int { return is_device(device) ? body() : kInvalidArgument; });
}

}  // namespace
}  // namespace fakes

using fakes::call;
using fakes::of_device;

FAKE_EXPORT int nvmlInit_v2() {
  return call(__func__, false, [] {
    ++fakes::state.initialized;
    return fakes::kSuccess;
  });
}

FAKE_EXPORT int nvmlShutdown() {
  return call(__func__, true, [] {
    --fakes::state.initialized;
    return fakes::kSuccess;
  });
}

FAKE_EXPORT const char* nvmlErrorString(int status) {
  switch (status) {
    case fakes::kSuccess: return "Success";
    case fakes::kUninitialized: return "Uninitialized";
    case fakes::kInvalidArgument: return "Invalid Argument";
    case 3: return "Not Supported";
    case 4: return "Insufficient Permissions";
    case fakes::kNotFound: return "Not Found";
    case fakes::kInsufficientSize: return "Insufficient Size";
    case 9: return "Driver Not Loaded";
    case 15: return "GPU is lost";
    default: return "Unknown Error";
  }
}

FAKE_EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** device) {
  return call(__func__, true, [&]() -> int {
    unsigned domain = 0, bus = 0;
    if (id == nullptr || sscanf(id, "%x:%x:", &domain, &bus) != 2) return fakes::kInvalidArgument;
    const auto count = static_cast<unsigned>(fakes::Rules::get().settings().devices);
    if (domain != 0 || bus == 0 || bus > count) return fakes::kNotFound;
    *device = fakes::devices + bus - 1;
    return fakes::kSuccess;
  });
}

FAKE_EXPORT int nvmlDeviceGetClockInfo(void* device, int type, unsigned* mhz) {
  return of_device(__func__, device, [&]() -> int {
    if (type < 0 || type > 3) return fakes::kInvalidArgument;
    *mhz = fakes::kClocks_mhz[type];
    return fakes::kSuccess;
  });
}

FAKE_EXPORT int nvmlDeviceGetMaxClockInfo(void* device, int type, unsigned* mhz) {
  return of_device(__func__, device, [&]() -> int {
    if (type < 0 || type > 3) return fakes::kInvalidArgument;
    *mhz = fakes::kClocks_mhz[type];
    return fakes::kSuccess;
  });
}

FAKE_EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(void* device,
                                                          unsigned long long* reasons) {
  return of_device(__func__, device, [&] {
    *reasons = fakes::is_hot() ? fakes::kHardwareThermalSlowdown : 0;
    return fakes::kSuccess;
  });
}

// This process, and with `busy` the system's first.
FAKE_EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void* device,
                                                        unsigned* count,
                                                        fakes::Process* processes) {
  return of_device(__func__, device, [&]() -> int {
    const unsigned room = *count;
    *count = fakes::Rules::get().settings().busy ? 2 : 1;
    if (processes == nullptr || room < *count) return fakes::kInsufficientSize;
    constexpr unsigned kNone = ~0u;
    processes[0] = {static_cast<unsigned>(getpid()), 512 << 20, kNone, kNone};
    if (*count == 2) processes[1] = {1, 1024 << 20, kNone, kNone};
    return fakes::kSuccess;
  });
}

FAKE_EXPORT int nvmlDeviceGetTemperature(void* device, int sensor, unsigned* celsius) {
  return of_device(__func__, device, [&]() -> int {
    if (sensor != 0) return fakes::kInvalidArgument;
    *celsius = fakes::is_hot() && fakes::Rules::get().settings().throttled_reads > 0 ? 95 : 45;
    return fakes::kSuccess;
  });
}

FAKE_EXPORT int nvmlDeviceGetUtilizationRates(void* device, fakes::Utilization* rates) {
  return of_device(__func__, device, [&] {
    *rates = {fakes::Rules::get().settings().busy ? 90u : 0u, 0u};
    return fakes::kSuccess;
  });
}
