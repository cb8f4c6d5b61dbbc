#include "measure/measure.h"

#include <algorithm>

#include "codegen/cpu_features.h"
#include "codegen/cuda/nvrtc.h"
#include "measure/dot_probe.h"
#include "measure/gpu_probe.h"
#include "measure/timing.h"
#include "runtime/gpu_context.h"
#include "support/cpu_features.h"
#include "target/dot_rates.h"
#include "target/tensor_rates.h"

namespace pruner {

double MeasureResult::cost_s() const {
  return ok() && !costs_s.empty() ? typical(costs_s) : kFailedCost;
}

// Every code of CUDA is of an arch, which the device must be able to run.
static Result<Unit> check_gpus(const Target& target, std::span<const int> devices) {
  TRY_ASSIGN(const std::vector<GpuFacts> here, list_gpus(target.backend));
  const std::string_view backend = backend_name(target.backend);
  for (const int number : devices) {
    if (number < 0 || static_cast<size_t>(number) >= here.size()) {
      return Error("there is no device ",
                   backend,
                   ":",
                   number,
                   ", the last one is ",
                   backend,
                   ":",
                   here.size() - 1);
    }
    const GpuFacts& facts = here[number];
    if (!row_of(target.backend).has_arch || target.gpu.arch.empty()) continue;
    if (!pruner_cuda_runs(target.gpu.arch.c_str(), facts.arch)) {
      return Error(facts.name,
                   " is ",
                   facts.arch,
                   ", code for ",
                   target.gpu.arch,
                   " does not run on it: use \"cuda --arch=",
                   facts.arch,
                   "\", or the model's name");
    }
  }
  return Unit{};
}

Result<Unit> check_buildable(const Target& target) {
  if (target.backend == Backend::kCuda) TRY(cuda_arch(target));
#if !PRUNER_LLVM
  if (!target.is_gpu()) return Error("this build has no LLVM, which makes code for CPUs");
#endif
  return Unit{};
}

Result<Unit> check_cpu_features(const Target& target) {
  int length = 0;
  const std::string features = cpu_features(target);
  const char* const missing = pruner_missing_cpu_feature(features.c_str(), &length);
  if (missing == nullptr) return Unit{};
  return Error("this CPU lacks ",
               std::string_view(missing, static_cast<size_t>(length)),
               ", which ",
               target.mcpu,
               " has");
}

Result<Unit> check_runs(const Target& target, std::span<const int> devices) {
  if (target.is_gpu()) return check_gpus(target, devices);
  if (target.isa != kHostIsa) {
    return Error("code for ",
                 isa_name(target.isa),
                 " cannot be measured on this ",
                 isa_name(kHostIsa),
                 " machine; tune it there, or `pruner compile` it without records");
  }
  const Result<Unit> features = check_cpu_features(target);
  if (features.ok()) return features;
  return Error(features.error().message(), ": its code cannot be measured here");
}

Result<Unit> check_measurable(const Target& target, std::span<const int> devices) {
  TRY(check_runs(target, devices));
  return check_buildable(target);
}

Result<Unit> check_measurable(const Target& target) {
  constexpr int kFirst[] = {0};
  return check_measurable(target, kFirst);
}

// Returns a size: what the last level keeps from one pass to the next must not count.
static int64_t beyond_caches(const Target& target) {
  return std::clamp(8 * target.l3_bytes, int64_t{128} << 20, int64_t{1} << 30);
}

WeightsFrom probe_weights(const Target& target, int64_t bytes) {
  constexpr double kAsFast = 0.85, kSeconds = 0.05;
  constexpr int kTurns = 4;  // one alone may come at a bad moment
  // The cores' own caches keep hardly any of so much.
  const int64_t surely = 4 * target.threads * target.l2_bytes;
  if (target.is_gpu() || bytes == 0 || bytes > target.l3_bytes) return WeightsFrom::kMemory;
  double gbs = 0, cache_gbs = 0;
  for (int turn = 0; turn < kTurns; ++turn) {
    cache_gbs = std::max(cache_gbs, probe_read_gbs(surely, target.threads, kSeconds));
    gbs = std::max(gbs, probe_read_gbs(std::max(bytes, surely), target.threads, kSeconds));
  }
  return gbs >= kAsFast * cache_gbs ? WeightsFrom::kLastLevel : WeightsFrom::kMemory;
}

PeakRates probe_peaks(const Target& target, double seconds) {
  PeakRates peaks = {
      .gflops = probe_fma_gflops(target, target.threads, seconds),
      .dots = {},
      .bandwidth_gbs = probe_read_gbs(beyond_caches(target), target.threads, seconds),
      .threads = target.threads};
  for (const DotRateRow& row : kDotRates) {
    if (target.dots.*row.rate > 0 && peaks.gflops > 0)
      peaks.dots.*row.rate = probe_dot_gflops(row, target.threads, seconds) / peaks.gflops;
  }
  return peaks;
}

Result<PeakRates> probe_gpu_peaks(const Target& target, double seconds) {
  TRY_ASSIGN(const Target probed, probe_gpu(target, seconds));
  const Gpu& gpu = probed.gpu;
  PeakRates peaks = {.gflops = gpu.peak_flops * 1e-9,
                     .dots = {},
                     .bandwidth_gbs = gpu.dram_bandwidth * 1e-9,
                     .threads = 0};
  for (const TensorRateRow& row : kTensorRates) {
    if (target.gpu.tensor_rates.*row.rate > 0)
      peaks.tensor.*row.rate = gpu.tensor_rates.*row.rate * gpu.sms * gpu.clock_hz * 1e-9;
  }
  return peaks;
}

}  // namespace pruner
