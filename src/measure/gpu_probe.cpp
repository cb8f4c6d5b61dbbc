#include "measure/gpu_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codegen/cuda/nvrtc.h"
#include "measure/tensor_probe.h"
#include "runtime/gpu_context.h"
#include "target/device_file.h"

namespace pruner {

namespace {

// A thread does so much that a kernel takes much longer than its launch.
constexpr int64_t kLoads = 8;           // loads of 16 bytes from the buffers in global memory
constexpr int64_t kSharedLoads = 2048;  // loads of 16 bytes
constexpr int64_t kSteps = 512;         // multiply-adds of each chain
constexpr int64_t kChains = 8;          // independent
constexpr int64_t kBlocksPerUnit = 16;
constexpr int64_t kLaunches = 200;  // launches in a row, to find what one costs

constexpr int64_t kVectorBytes = 16;
constexpr int64_t kMostMemoryBytes = int64_t{256} << 20;  // more than an L2 holds
// An L2 holds it, a unit's L1 does not.
constexpr int64_t kLeastL2Bytes = 1 << 20, kMostL2Bytes = 8 << 20;

// Words has the names that the two dialects use; CUDA's float4 does not add by itself.
struct Words {
  Backend backend;
  const char *kernel, *global, *shared, *barrier, *block, *thread, *prelude;
};
constexpr Words kWords[] = {{Backend::kOpenCl,
                             "__kernel",
                             "__global",
                             "__local",
                             "barrier(CLK_LOCAL_MEM_FENCE)",
                             "get_group_id(0)",
                             "get_local_id(0)",
                             R"(
#define ALL(value) ((float4)(value))
)"},
                            {Backend::kCuda,
                             "extern \"C\" __global__",
                             "",
                             "__shared__",
                             "__syncthreads()",
                             "blockIdx.x",
                             "threadIdx.x",
                             R"(
#define restrict __restrict__
#define ALL(value) make_float4(value, value, value, value)
#define mad(x, a, b) fmaf(x, a, b)
typedef unsigned int uint;
__device__ inline float4 operator+(float4 a, float4 b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}
)"}};

const Words& words_of(Backend backend) {
  const Words* row = kWords;
  while (row->backend != backend) ++row;
  return *row;
}

// A thread reads `LOADS` vectors of what its block reads, all blocks together the buffer or, where
// it is the smaller, the buffer over and over. Sums are written if they are below 0, which they
// never are and no compiler knows.
constexpr const char* kReads = R"(
$kernel void read_global($global const float4* restrict data, $global float* restrict result) {
  float4 sum = ALL(0.0f);
  for (int i = 0; i < LOADS; ++i)
    sum = sum + data[($block * LOADS + i) * THREADS % VECTORS + $thread];
  if (sum.x + sum.y + sum.z + sum.w < 0.0f) *result = sum.x;
}
$kernel void read_shared($global float* restrict result) {
  $shared float4 data[THREADS];
  const uint thread = $thread;
  data[thread] = ALL((float)thread);
  $barrier;
  float4 sum = ALL(0.0f);
#pragma unroll 8
  for (uint i = 0; i < SHARED_LOADS; ++i) sum = sum + data[(thread + i) % THREADS];
  if (sum.x + sum.y + sum.z + sum.w < 0.0f) *result = sum.x;
}
$kernel void nothing($global float* restrict result) {}
)";
// A chain x -> x * a + b settles at 2 * b.
constexpr const char* kMultiplyAdd = R"(
$kernel void multiply_add_$lanes($global $type* restrict result) {
  const $type a = 0.5f, b = ($type)(0.5f + $thread);
  $type x0 = 1, x1 = 2, x2 = 3, x3 = 4, x4 = 5, x5 = 6, x6 = 7, x7 = 8;
  for (int i = 0; i < STEPS; ++i) {
    x0 = mad(x0, a, b), x1 = mad(x1, a, b);
    x2 = mad(x2, a, b), x3 = mad(x3, a, b);
    x4 = mad(x4, a, b), x5 = mad(x5, a, b);
    x6 = mad(x6, a, b), x7 = mad(x7, a, b);
  }
  result[$block * THREADS + $thread] = x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7;
}
)";

void replace_all(std::string& text, std::string_view word, std::string_view by) {
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + by.size()))
    text.replace(at, word.size(), by);
}

/// The kernels in a dialect, with multiply-adds in vectors of these widths.
std::string source_in(const Words& words, std::span<const int64_t> widths) {
  std::string source = kReads;
  for (const int64_t lanes : widths) {
    std::string kernel = kMultiplyAdd;
    replace_all(kernel, "$lanes", std::to_string(lanes));
    replace_all(kernel, "$type", lanes == 1 ? "float" : "float" + std::to_string(lanes));
    source += kernel;
  }
  replace_all(source, "$kernel", words.kernel);
  replace_all(source, "$global", words.global);
  replace_all(source, "$shared", words.shared);
  replace_all(source, "$barrier", words.barrier);
  replace_all(source, "$block", words.block);
  replace_all(source, "$thread", words.thread);
  return words.prelude + source;
}

class Probe {
 public:
  Probe(GpuContext& context, const Target& target, double seconds)
      : context_(context),
        target_(target),
        device_(context.facts()),
        seconds_(seconds),
        threads_(static_cast<int64_t>(std::bit_floor(
            static_cast<uint64_t>(std::clamp<int64_t>(device_.threads_per_block, 1, 256))))),
        blocks_(std::max<int64_t>(device_.units, 1) * kBlocksPerUnit) {}

  Result<double> peak_flops() const {
    double best = 0;
    for (const int64_t lanes : widths()) {
      TRY_ASSIGN(
          const double time,
          seconds_of(
              "multiply_add_" + std::to_string(lanes), blocks_, {blocks_ * threads_ * lanes}));
      const int64_t flops = 2 * kSteps * kChains * lanes * blocks_ * threads_;
      best = std::max(best, static_cast<double>(flops) / time);
    }
    return best;
  }

  /// Returns the bandwidth of reading a buffer of about so many bytes.
  Result<double> global_bandwidth(int64_t buffer_bytes) const {
    const int64_t of_block = threads_ * kLoads * kVectorBytes;
    const int64_t pieces = std::max<int64_t>(buffer_bytes / of_block, 1);
    const int64_t blocks = std::max<int64_t>(memory_bytes() / of_block, 1);
    const int64_t floats = pieces * of_block / 4;
    TRY_ASSIGN(const double time, seconds_of("read_global", blocks, {floats, 1}));
    return static_cast<double>(blocks * of_block) / time;
  }
  Result<double> dram_bandwidth() const { return global_bandwidth(memory_bytes()); }
  Result<double> l2_bandwidth() const {
    return global_bandwidth(std::clamp(device_.l2_bytes / 4, kLeastL2Bytes, kMostL2Bytes));
  }

  Result<double> shared_bandwidth() const {
    TRY_ASSIGN(const double time, seconds_of("read_shared", blocks_, {1}));
    return static_cast<double>(blocks_ * threads_ * kSharedLoads * kVectorBytes) / time;
  }

  Result<double> launch_s() const { return seconds_of("nothing", 1, {1}, kLaunches); }

 private:
  int64_t memory_bytes() const { return std::min(kMostMemoryBytes, device_.memory_bytes / 8); }

  /// Seconds of one launch: the fastest timing of `times` in a row. Buffers of so many floats are
  /// the kernel's arguments; the first is filled with 1.
  Result<double> seconds_of(const std::string& kernel,
                            int64_t blocks,
                            const std::vector<int64_t>& floats,
                            int64_t times = 1) const {
    const auto macro = [](const char* name, int64_t value) {
      return std::string("#define ") + name + " " + std::to_string(value) + "\n";
    };
    const std::string source = macro("THREADS", threads_) + macro("LOADS", kLoads) +
                               macro("SHARED_LOADS", kSharedLoads) + macro("STEPS", kSteps) +
                               macro("VECTORS", std::max<int64_t>(floats[0] / 4, 1)) +
                               source_in(words_of(target_.backend), widths());
    Artifact artifact;
    artifact.backend = target_.backend;
    artifact.symbol = kernel;
    artifact.object = source;
    if (row_of(target_.backend).has_arch) {
      TRY_ASSIGN(artifact.object, compile_to_cubin(source, target_));
    }
    Artifact::Launch launch;
    launch.kernel = kernel;
    launch.blocks = blocks;
    launch.threads = threads_;
    std::vector<GpuBuffer> buffers;
    std::vector<GpuBuffer*> arguments;
    buffers.reserve(floats.size() + 1);  // `arguments` points into it
    for (size_t i = 0; i <= floats.size(); ++i) {
      const bool workspace = i == floats.size();
      TRY_ASSIGN(GpuBuffer buffer, context_.allocate(workspace ? 0 : 4 * floats[i]));
      buffers.push_back(std::move(buffer));
      arguments.push_back(&buffers.back());
      if (!workspace) launch.arguments.push_back(static_cast<int>(i));
    }
    artifact.launches = {launch};
    TRY_ASSIGN(GpuProgram program, context_.load(artifact));
    TRY(buffers[0].write(std::vector<float>(static_cast<size_t>(floats[0]), 1).data()));
    TRY(program.run(arguments, 1));  // drivers compile when a kernel is first run
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::duration<double>(seconds_);
    double fastest = 0;
    do {
      TRY_ASSIGN(const double time, program.run(arguments, times));
      if (fastest == 0 || time < fastest) fastest = time;
    } while (Clock::now() < end);
    if (fastest <= 0) return Error(device_.name, " does not tell how long a kernel runs");
    return fastest;
  }

  /// Returns widths of vectors: vectors suit CPUs, single numbers suit GPUs.
  std::vector<int64_t> widths() const {
    return row_of(target_.backend).on_host ? std::vector<int64_t>{1, 4, 16}
                                           : std::vector<int64_t>{1};
  }

  GpuContext& context_;
  const Target& target_;
  const GpuFacts& device_;
  double seconds_;
  int64_t threads_, blocks_;
};

/// A rate in units per second, to 0.1e9.
double rounded(double rate) { return std::max(std::round(rate * 1e-8), 1.0) * 1e8; }

}  // namespace

Result<Target> probe_gpu(Target target, double seconds) {
  TRY_ASSIGN(const std::unique_ptr<GpuContext> context, GpuContext::open(target.backend, 0));
  const GpuFacts& device = context->facts();
  const bool has_arch = row_of(target.backend).has_arch;
  if (has_arch) {
    TRY_ASSIGN(target.gpu, with_facts(target.gpu, device));
  }
  const Probe probe(*context, target, seconds / 4);
  Gpu gpu = target.gpu;
  TRY_ASSIGN(gpu.peak_flops, probe.peak_flops());
  TRY_ASSIGN(gpu.dram_bandwidth, probe.dram_bandwidth());
  TRY_ASSIGN(gpu.l2_bandwidth, probe.l2_bandwidth());
  TRY_ASSIGN(gpu.shared_bandwidth, probe.shared_bandwidth());
  TRY_ASSIGN(gpu.launch_s, probe.launch_s());
  if (has_arch) {
    TRY_ASSIGN(gpu.tensor_rates, probe_tensor_rates(*context, target, seconds / 4));
  }
  for (double Gpu::*rate :
       {&Gpu::peak_flops, &Gpu::dram_bandwidth, &Gpu::l2_bandwidth, &Gpu::shared_bandwidth})
    gpu.*rate = rounded(gpu.*rate);
  gpu.launch_s = std::max(std::round(gpu.launch_s * 1e9), 1.0) * 1e-9;
  gpu.sms = static_cast<int>(std::clamp<int64_t>(device.units, 1, 65536));
  if (device.clock_hz > 0) gpu.clock_hz = device.clock_hz;
  if (has_arch && device.l2_bytes > 0) gpu.l2_bytes = device.l2_bytes;
  gpu.psa = abstraction_of(gpu);
  target.gpu = gpu;
  target.source =
      fmt::format("measured by pruner device probe on {} ({})", device.name, device.driver);
  return target;
}

}  // namespace pruner
