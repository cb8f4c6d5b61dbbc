// Where the time of a module goes: its kernels against what the machine can do at most.
#pragma once

#include <span>
#include <string>

#include "deploy/loaded_module.h"
#include "measure/measure.h"
#include "support/json.h"

namespace pruner {

/// A header, a line a kernel in execution order (time and its share, GFLOP/s and GB/s with their
/// shares of the peaks, precision, sketch, name), a line of totals, a line of the peaks if they are
/// known. A kernel's peak is that of what it multiplies with; the share of all is of the time that
/// they would take at theirs. What comes from a cache may be above 100 % of the memory's bandwidth.
std::string print_profile(std::span<const KernelTime> kernels, const PeakRates& peaks);

/// "Peak: 205.1 GFLOP/s of fused multiply-adds, 3012.5 of bfloat16_tile, 31.2 GB/s read from
/// memory, on 2 threads"; of a GPU "..., on the device".
std::string print(const PeakRates& peaks);
/// {"peak_gflops","unit_gflops":{"bfloat16_tile"},"bandwidth_gbs","threads"}.
Json to_json(const PeakRates& peaks);

/// to_json(peaks) with {"kernels":[{"name","sketch","precision","median_ms","flops","gflops",
/// "peak_percent","bytes","gbs","bandwidth_percent"}]}; what is not known is null.
Json profile_json(std::span<const KernelTime> kernels, const PeakRates& peaks);

}  // namespace pruner
