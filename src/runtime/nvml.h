// Asks NVIDIA's management library (libnvidia-ml.so.1) how fast a GPU runs at the moment, and who
// else uses the GPU. The library is looked for when it is asked. If the library is missing, nothing
// is known, and that is no error.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pruner {

/// A GPU's clocks at one moment.
struct GpuClocks {
  int sm_mhz = 0;
  int memory_mhz = 0;
  bool throttled = false;  // slowed down by heat or by its power supply, not by having little to do
  friend bool operator==(const GpuClocks&, const GpuClocks&) = default;
};

/// Returns the clocks of the GPU at a place on PCI (GpuFacts::bus); nothing without NVML or such a
/// GPU.
std::optional<GpuClocks> read_gpu_clocks(const std::string& bus);

/// Returns the processes that compute on the GPU; none if NVML does not say.
std::vector<pid_t> processes_on_gpu(const std::string& bus);

}  // namespace pruner
