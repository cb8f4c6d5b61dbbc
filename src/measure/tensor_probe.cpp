#include "measure/tensor_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <vector>

#include "codegen/c/mma_function.h"
#include "codegen/cuda/nvrtc.h"
#include "target/tensor_rates.h"

namespace pruner {

namespace {

// One block has a multiprocessor to itself: 4 warps for each of its schedulers, each with as many
// independent sums as hide what an instruction takes from its begin to its result.
constexpr int kWarps = 16;
constexpr int kChains = 8;
// Two groups of warps, each with products of the most columns, of which so many are added to the
// same sums.
constexpr int kGroups = 2, kGroupColumns = 256, kGroupProducts = 8;
constexpr int64_t kLineBytes = 128;
constexpr int64_t kLeastSteps = 16;  // steps that a fake's device does, too
constexpr int64_t kMostSteps =
    4096;  // some ms; what is before and after the steps no longer counts

int64_t products(const MmaInstruction& row) { return int64_t{row.m} * row.n * row.k; }
int threads_of(const MmaInstruction& row) {
  return row.of_group() ? kGroups * kGroupThreads : kWarps * kWarpLanes;
}
int64_t products_of_step(const MmaInstruction& row) {
  return products(row) *
         (row.of_group() ? kGroupColumns / row.n * kGroupProducts * kGroups : kChains * kWarps);
}
// Bytes of shared memory with a group's two matrices.
int64_t matrix_bytes(const MmaInstruction& row) {
  return row.of_group() ? (row.m + kGroupColumns) * kLineBytes : 0;
}

/// The instruction that multiplies most at once; null: the arch has none.
const MmaInstruction* instruction_of(const TensorRateRow& rate, const Gpu& gpu) {
  const MmaInstruction* largest = nullptr;
  for (const MmaInstruction& row : mma_instructions()) {
    const bool fits = row.rate == rate.rate && row.is_on(compute_capability(gpu));
    if (fits && (largest == nullptr || products(row) > products(*largest))) largest = &row;
  }
  return largest;
}

std::string kernel_name(const TensorRateRow& rate) { return fmt::format("tensor_{}", rate.name); }

// The functions that the kernel of a row calls.
std::vector<std::string> functions_of(const MmaInstruction& row) {
  if (!row.of_group()) return mma_function(row, false).texts;
  std::vector<std::string> texts = group_mma_function(row, kGroupColumns).texts;
  texts.insert(texts.end(),
               {order_function("fence_shared_memory", kFenceShared),
                order_function("fence_sums", kFenceSums),
                order_function("commit_products", kCommitProducts),
                order_function("wait_for_products", fmt::format(kWaitForProducts, 0))});
  return texts;
}

// Both matrices lie in shared memory, and all steps read the same.
std::string group_kernel_source(const std::string& name, const MmaInstruction& row) {
  const MmaFunction mma = group_mma_function(row, kGroupColumns);
  const auto matrix = [&](int64_t at, int64_t lines) {
    return matrix_descriptor(fmt::format("shared_memory + {}", at), kLineBytes, lines);
  };
  return fmt::format(R"(
extern "C" __global__ void __launch_bounds__({threads}, 1)
{name}(const int* __restrict__ steps, long long* __restrict__ cycles, {sum}* __restrict__ result) {{
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  for (int i = threadIdx.x; i < {words}; i += {threads}) ((unsigned*)shared_memory)[i] = i;
  {sum} sums[{of_sum}];
#pragma unroll
  for (int i = 0; i < {of_sum}; ++i) sums[i] = 0;
  fence_shared_memory();
  const int count = *steps;
  __syncthreads();
  const long long begin = clock64();
#pragma unroll 1
  for (int step = 0; step < count; ++step) {{
    fence_sums();
#pragma unroll
    for (int j = 0; j < {products}; ++j) {mma}(sums, {a}, {b});
    commit_products();
    wait_for_products();
  }}
  __syncthreads();
  const long long end = clock64();
  if (threadIdx.x == 0) *cycles = end - begin;
  {sum} total = 0;
#pragma unroll
  for (int i = 0; i < {of_sum}; ++i) total += sums[i];
  result[threadIdx.x] = total;
}}
)",
                     fmt::arg("threads", threads_of(row)),
                     fmt::arg("name", name),
                     fmt::arg("sum", mma.sum_type),
                     fmt::arg("words", matrix_bytes(row) / 4),
                     fmt::arg("of_sum", mma.sum_registers),
                     fmt::arg("products", kGroupProducts),
                     fmt::arg("mma", mma.name),
                     fmt::arg("a", matrix(0, row.m)),
                     fmt::arg("b", matrix(row.m * kLineBytes, kGroupColumns)));
}

// The sums begin apart and are written, so that no compiler can leave out any of them.
std::string kernel_source(const std::string& name, const MmaInstruction& row) {
  if (row.of_group()) return group_kernel_source(name, row);
  const MmaFunction mma = mma_function(row, false);  // rounding costs instructions of other units
  return fmt::format(R"(
extern "C" __global__ void __launch_bounds__({threads})
{name}(const int* __restrict__ steps, long long* __restrict__ cycles, {sum}* __restrict__ result) {{
  unsigned a[{of_a}], b[{of_b}];
  {sum} sums[{chains}][{of_sum}];
#pragma unroll
  for (int i = 0; i < {of_a}; ++i) a[i] = threadIdx.x + i;
#pragma unroll
  for (int i = 0; i < {of_b}; ++i) b[i] = threadIdx.x + i;
#pragma unroll
  for (int j = 0; j < {chains}; ++j) {{
#pragma unroll
    for (int i = 0; i < {of_sum}; ++i) sums[j][i] = j;
  }}
  const int count = *steps;
  __syncthreads();
  const long long begin = clock64();
  for (int step = 0; step < count; ++step) {{
#pragma unroll
    for (int j = 0; j < {chains}; ++j) {mma}(sums[j], a, b);
  }}
  __syncthreads();
  const long long end = clock64();
  if (threadIdx.x == 0) *cycles = end - begin;
  {sum} total = 0;
#pragma unroll
  for (int j = 0; j < {chains}; ++j) {{
#pragma unroll
    for (int i = 0; i < {of_sum}; ++i) total += sums[j][i];
  }}
  result[threadIdx.x] = total;
}}
)",
                     fmt::arg("threads", kWarps * kWarpLanes),
                     fmt::arg("name", name),
                     fmt::arg("sum", mma.sum_type),
                     fmt::arg("of_a", mma.a_registers),
                     fmt::arg("of_b", mma.b_registers),
                     fmt::arg("of_sum", mma.sum_registers),
                     fmt::arg("chains", kChains),
                     fmt::arg("mma", mma.name));
}

/// A kernel of the cubin, one block of it.
Artifact kernel_of(const std::string& cubin, const std::string& name, const MmaInstruction& row) {
  Artifact artifact;
  artifact.backend = Backend::kCuda;
  artifact.symbol = name;
  artifact.object = cubin;
  Artifact::Launch launch;
  launch.kernel = name;
  launch.blocks = 1;
  launch.threads = threads_of(row);
  launch.shared_bytes = launch.dynamic_bytes = matrix_bytes(row);
  launch.arguments = {0, 1, 2};
  artifact.launches = {launch};
  return artifact;
}

/// Operations a clock: those of the run with most steps that `seconds` allow.
Result<double> rate_of(GpuContext& context,
                       const Artifact& artifact,
                       const MmaInstruction& row,
                       double seconds) {
  using Clock = std::chrono::steady_clock;
  TRY_ASSIGN(GpuBuffer steps, context.allocate(sizeof(int32_t)));
  TRY_ASSIGN(GpuBuffer cycles, context.allocate(sizeof(int64_t)));
  TRY_ASSIGN(GpuBuffer result, context.allocate(sizeof(float) * kWarps * kWarpLanes));
  TRY_ASSIGN(GpuBuffer workspace, context.allocate(0));
  TRY_ASSIGN(GpuProgram program, context.load(artifact));
  GpuBuffer* const buffers[] = {&steps, &cycles, &result, &workspace};
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  double rate = 0;
  for (int64_t count = kLeastSteps; count <= kMostSteps; count *= 2) {
    const auto of_kernel = static_cast<int32_t>(count);
    TRY(steps.write(&of_kernel));
    TRY(program.run(buffers, 1));
    int64_t took = 0;
    TRY(cycles.read(&took));
    if (took <= 0) return Error(context.facts().name, " does not tell how many cycles pass");
    const int64_t operations = 2 * products_of_step(row) * count;
    rate = static_cast<double>(operations) / static_cast<double>(took);
    if (Clock::now() >= end) break;
  }
  return std::clamp(std::round(rate), 1.0, kMostTensorRate);
}

}  // namespace

std::string tensor_probe_source(const Gpu& gpu) {
  std::string kernels, functions;
  for (const TensorRateRow& rate : kTensorRates) {
    const MmaInstruction* row = instruction_of(rate, gpu);
    if (row == nullptr) continue;
    kernels += kernel_source(kernel_name(rate), *row);
    for (const std::string& text : functions_of(*row))
      if (functions.find(text) == std::string::npos)
        functions += "static __device__ __forceinline__" + text;
  }
  return functions + kernels;
}

Result<TensorRates> probe_tensor_rates(GpuContext& context, const Target& target, double seconds) {
  TensorRates rates;
  const std::string source = tensor_probe_source(target.gpu);
  if (source.empty()) return rates;
  const bool groups = std::ranges::any_of(kTensorRates, [&](const TensorRateRow& rate) {
    const MmaInstruction* row = instruction_of(rate, target.gpu);
    return row != nullptr && row->of_group();
  });
  Target exact = target;
  if (groups) {
    TRY_ASSIGN(exact, with_instructions_of_its_own(target));
  }
  TRY_ASSIGN(const std::string cubin, compile_to_cubin(source, exact));
  for (const TensorRateRow& rate : kTensorRates) {
    const MmaInstruction* row = instruction_of(rate, target.gpu);
    if (row == nullptr) continue;
    TRY_ASSIGN(rates.*rate.rate,
               rate_of(context, kernel_of(cubin, kernel_name(rate), *row), *row, seconds));
  }
  return rates;
}

}  // namespace pruner
