#include "measure/measure.h"

#include <algorithm>

#include "codegen/cpu_features.h"
#include "measure/timing.h"
#include "runtime/module/cpu_features.h"
#include "runtime/opencl.h"

namespace pruner {

double MeasureResult::cost_s() const {
  return ok() && !costs_s.empty() ? typical(costs_s) : kFailedCost;
}

Result<Unit> check_measurable(const Target& target) {
  if (target.backend == Backend::kCuda) {
    return Error(
        "code for cuda is made but not run by this build; tune for opencl, or see the code "
        "with `pruner compile --print=cuda`");
  }
  if (target.backend == Backend::kOpenCl) {
    TRY(list_opencl_devices());
    return Unit{};
  }
  if (target.isa != kHostIsa) {
    return Error("code for ",
                 isa_name(target.isa),
                 " cannot be measured on this ",
                 isa_name(kHostIsa),
                 " machine; tune it there, or `pruner compile` it without records");
  }
  int length = 0;
  const std::string features = cpu_features(target);
  const char* missing = pruner_missing_cpu_feature(features.c_str(), &length);
  if (missing == nullptr) return Unit{};
  return Error("this CPU lacks ",
               std::string_view(missing, static_cast<size_t>(length)),
               ", which ",
               target.mcpu,
               " has: its code cannot be measured here");
}

// What the last level keeps from one pass to the next must not count.
static int64_t beyond_caches(const Target& target) {
  return std::clamp(8 * target.l3_bytes, int64_t{128} << 20, int64_t{1} << 30);
}

PeakRates probe_peaks(const Target& target, double seconds) {
  return {.gflops = probe_fma_gflops(target, target.threads, seconds),
          .bandwidth_gbs = probe_read_gbs(beyond_caches(target), target.threads, seconds),
          .threads = target.threads};
}

}  // namespace pruner
