// Profiles a module: the times of its kernels against the greatest rates of the machine.
#pragma once

#include <span>
#include <string>

#include "deploy/loaded_module.h"
#include "measure/measure.h"
#include "support/json.h"

namespace pruner {

/// Prints a header, a line a kernel in execution order, a line of totals, and a line of the known
/// peaks. A kernel's line has its time and share, GFLOP/s and GB/s with their shares of the peaks,
/// precision, sketch and name. A kernel's peak is the rate of the unit that it multiplies with. The
/// total's share is the time at the peaks over the time. Cached data may exceed 100 % of bandwidth.
std::string print_profile(std::span<const KernelTime> kernels, const PeakRates& peaks);

/// Prints "Peak: 205.1 GFLOP/s of fused multiply-adds, 3012.5 of bfloat16_tile, 31.2 GB/s read from
/// memory, on 2 threads"; for a GPU "..., on the device".
std::string print(const PeakRates& peaks);
/// {"peak_gflops","unit_gflops":{"bfloat16_tile"},"bandwidth_gbs","threads"}.
Json to_json(const PeakRates& peaks);

/// to_json(peaks) with {"kernels":[{"name","sketch","precision","median_ms","flops","gflops",
/// "peak_percent","bytes","gbs","bandwidth_percent"}]}; unknown values are null.
Json profile_json(std::span<const KernelTime> kernels, const PeakRates& peaks);

}  // namespace pruner
