#include "measure/measure.h"

#include "measure/timing.h"

namespace pruner {

double MeasureResult::cost_s() const {
  return ok() && !costs_s.empty() ? typical(costs_s) : kFailedCost;
}

PeakRates probe_peaks(const Target& target, double seconds) {
  return {.gflops = probe_fma_gflops(target, target.threads, seconds),
          .bandwidth_gbs = probe_read_gbs(target, target.threads, seconds),
          .threads = target.threads};
}

}  // namespace pruner
