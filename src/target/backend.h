// The backends, a row each: what every part of Pruner asks of a backend. How code is made for a
// backend is a row of codegen/codegen.cpp, its driver a row of runtime/gpu_context.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace pruner {

enum class Backend : uint8_t { kLlvm, kCuda, kOpenCl };

struct BackendRow {
  Backend backend;
  std::string_view name;      // first word of a target text
  bool is_gpu;                // programs are kernels of blocks and threads
  bool on_host;               // kernels run, or may run (PoCL), on this machine's cores
  bool has_arch;              // code is made for one architecture, which devices tell
  double run_overhead_s;      // added to the time limit of a run whose runner stops it, or compiles
  std::string_view executor;  // modules' executor, and its driver: symbols of runtime/module
  std::string_view driver;
};
inline constexpr BackendRow kBackends[] = {
    {Backend::kLlvm, "llvm", false, true, false, 10, "pruner_cpu_executor", "0"},
    {Backend::kCuda, "cuda", true, false, true, 0, "pruner_gpu_executor", "pruner_cuda_driver"},
    {Backend::kOpenCl,
     "opencl",
     true,
     true,
     false,
     30,
     "pruner_gpu_executor",
     "pruner_opencl_driver"},
};

constexpr const BackendRow& row_of(Backend backend) {
  return kBackends[static_cast<size_t>(backend)];
}
constexpr std::string_view backend_name(Backend backend) { return row_of(backend).name; }
constexpr std::optional<Backend> parse_backend(std::string_view name) {
  for (const BackendRow& row : kBackends)
    if (row.name == name) return row.backend;
  return std::nullopt;
}

}  // namespace pruner
