// Where the time of a module goes: its kernels against what the machine can do at most.
#pragma once

#include <span>
#include <string>

#include "deploy/loaded_module.h"
#include "measure/measure.h"
#include "support/json.h"

namespace pruner {

/// A header, a line a kernel in execution order (time and its share, GFLOP/s and GB/s with their
/// shares of the peaks, sketch, name), a line of totals, a line of the peaks if they are known.
/// What comes from a cache may be above 100 % of the memory's bandwidth.
std::string print_profile(std::span<const KernelTime> kernels, const PeakRates& peaks);

/// "Peak: 205.1 GFLOP/s of fused multiply-adds, 31.2 GB/s read from memory, on 2 threads".
std::string print(const PeakRates& peaks);
/// {"peak_gflops","bandwidth_gbs","threads"}.
Json to_json(const PeakRates& peaks);

/// to_json(peaks) with {"kernels":[{"name","sketch","median_ms","flops",
/// "gflops","peak_percent","bytes","gbs","bandwidth_percent"}]}; a
/// rate that is not known is null.
Json profile_json(std::span<const KernelTime> kernels, const PeakRates& peaks);

}  // namespace pruner
