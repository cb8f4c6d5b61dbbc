#include "report/profile_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace pruner {

namespace {

/// The quotient, if it is one.
std::optional<double> ratio(double a, double b) {
  return b > 0 ? std::optional(a / b) : std::nullopt;
}

/// A kernel's time in the table's terms.
struct Rates {
  Rates(const KernelTime& k, const PeakRates& peaks)
      : gflops(ratio(k.flops, k.median_ms * 1e6)),
        peak_percent(ratio(100 * gflops.value_or(0), peaks.gflops)),
        gbs(ratio(k.bytes, k.median_ms * 1e6)),
        bandwidth_percent(ratio(100 * gbs.value_or(0), peaks.bandwidth_gbs)) {}

  std::optional<double> gflops, peak_percent, gbs, bandwidth_percent;
};

KernelTime total_of(std::span<const KernelTime> kernels) {
  KernelTime total{.name = fmt::format("{} kernels", kernels.size()), .sketch = ""};
  for (const KernelTime& k : kernels) {
    total.flops += k.flops;
    total.bytes += k.bytes;
    total.median_ms += k.median_ms;
  }
  return total;
}

std::string number(std::optional<double> value) {
  return value ? fmt::format("{:.1f}", *value) : "-";
}

Json or_null(std::optional<double> value) { return value ? Json(*value) : Json(); }

}  // namespace

std::string print_profile(std::span<const KernelTime> kernels, const PeakRates& peaks) {
  const KernelTime total = total_of(kernels);
  size_t width = std::string_view("Sketch").size();
  for (const KernelTime& k : kernels) width = std::max(width, k.sketch.size());
  std::string table = fmt::format("{:>4} {:>10} {:>6} {:>9} {:>7} {:>8} {:>7}  {:<{}}  {}\n",
                                  "ID",
                                  "Time (ms)",
                                  "%",
                                  "GFLOP/s",
                                  "% peak",
                                  "GB/s",
                                  "% mem.",
                                  "Sketch",
                                  width,
                                  "Kernel");
  const auto add_line = [&](const std::string& id, const KernelTime& k) {
    const Rates rates(k, peaks);
    table += fmt::format("{:>4} {:>10.4f} {:>6} {:>9} {:>7} {:>8} {:>7}  {:<{}}  {}\n",
                         id,
                         k.median_ms,
                         number(ratio(100 * k.median_ms, total.median_ms)),
                         number(rates.gflops),
                         number(rates.peak_percent),
                         number(rates.gbs),
                         number(rates.bandwidth_percent),
                         k.sketch,
                         width,
                         k.name);
  };
  for (size_t i = 0; i < kernels.size(); ++i) add_line(std::to_string(i), kernels[i]);
  add_line("all", total);
  return peaks.gflops > 0 ? table + print(peaks) + "\n" : table;
}

std::string print(const PeakRates& peaks) {
  return fmt::format(
      "Peak: {:.1f} GFLOP/s of fused multiply-adds, {:.1f} GB/s read from memory, on {} threads",
      peaks.gflops,
      peaks.bandwidth_gbs,
      peaks.threads);
}

Json to_json(const PeakRates& peaks) {
  return {{"peak_gflops", peaks.gflops},
          {"bandwidth_gbs", peaks.bandwidth_gbs},
          {"threads", peaks.threads}};
}

Json profile_json(std::span<const KernelTime> kernels, const PeakRates& peaks) {
  Json json = to_json(peaks);
  json["kernels"] = Json::array();
  for (const KernelTime& k : kernels) {
    const Rates rates(k, peaks);
    json["kernels"].push_back({{"name", k.name},
                               {"sketch", k.sketch},
                               {"median_ms", k.median_ms},
                               {"flops", k.flops},
                               {"gflops", or_null(rates.gflops)},
                               {"peak_percent", or_null(rates.peak_percent)},
                               {"bytes", k.bytes},
                               {"gbs", or_null(rates.gbs)},
                               {"bandwidth_percent", or_null(rates.bandwidth_percent)}});
  }
  return json;
}

}  // namespace pruner
