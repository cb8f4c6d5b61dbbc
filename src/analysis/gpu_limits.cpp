#include "analysis/gpu_limits.h"

#include <algorithm>

namespace pruner {

static std::string exceeded(const char* what, double value, int64_t limit) {
  return std::string(what) + ": " + std::to_string(static_cast<int64_t>(value)) +
         ", the device allows " + std::to_string(limit);
}

Bindings bindings_of(std::span<const StatementLoop> loops) {
  Bindings bound;
  for (const StatementLoop& loop : loops) {
    const auto extent = static_cast<float>(loop.extent);
    const int place = static_cast<int>(loop.role) - static_cast<int>(LoopRole::kBlockX);
    if (loop.role == LoopRole::kVThread) bound.vthreads *= extent;
    if (place >= 0) bound.extents[place] = extent;
  }
  return bound;
}

std::string gpu_limit(const Statements& program, const Gpu& gpu) {
  std::vector<double> shared_bytes(static_cast<size_t>(program.kernels), 0);
  std::vector<bool> counted(program.buffers.size(), false);
  for (const Statement& s : program.statements) {
    if (!s.gpu) continue;
    const StatementBuffer& buffer = program.buffer(s.buffer);
    const double block = bindings_of(program.loops_of(s)).threads();
    if (block > static_cast<double>(gpu.max_threads_per_block))
      return exceeded("threads of a block", block, gpu.max_threads_per_block);
    const auto id = static_cast<size_t>(s.buffer.value);
    if (buffer.scope != BufferScope::kShared || counted[id]) continue;
    counted[id] = true;
    double& bytes = shared_bytes[s.kernel];
    bytes += buffer.allocated * buffer.element_bytes;
    if (bytes > static_cast<double>(gpu.shared_bytes_per_block))
      return exceeded("bytes of shared memory", bytes, gpu.shared_bytes_per_block);
  }
  return "";
}

Gpu gpu_of_record(std::span<const int64_t> hardware) {
  Gpu gpu;
  if (hardware.size() != 8) return gpu;
  const auto set = [](int64_t& limit, int64_t value) { limit = value > 0 ? value : limit; };
  set(gpu.shared_bytes_per_block, hardware[3]);
  set(gpu.max_threads_per_block, hardware[5]);
  return gpu;
}

}  // namespace pruner
