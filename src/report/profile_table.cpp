#include "report/profile_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "target/dot_rates.h"
#include "target/tensor_rates.h"

namespace pruner {

namespace {

/// The quotient, if it is one.
std::optional<double> ratio(double a, double b) {
  return b > 0 ? std::optional(a / b) : std::nullopt;
}

/// GFLOP/s of what a kernel multiplies with; 0: not known.
double peak_of(const KernelTime& k, const PeakRates& peaks) {
  if (k.precision == dtype_name(DType::kFloat32)) return peaks.gflops;
  if (const TensorRateRow* unit = find_tensor_rate(k.precision)) return peaks.tensor.*unit->rate;
  const DotRateRow* unit = find_dot_rate(k.precision);
  return unit != nullptr ? peaks.gflops * peaks.dots.*unit->rate : 0;
}

/// Milliseconds that a kernel would take at its peak.
std::optional<double> ideal_ms(const KernelTime& k, const PeakRates& peaks) {
  return ratio(k.flops, peak_of(k, peaks) * 1e6);
}

/// A kernel's time in the table's terms.
struct Rates {
  Rates(const KernelTime& k, std::optional<double> ideal_ms, const PeakRates& peaks)
      : gflops(k.bytes > 0 ? ratio(k.flops, k.median_ms * 1e6) : std::nullopt),
        peak_percent(k.bytes > 0 && ideal_ms ? ratio(100 * *ideal_ms, k.median_ms) : std::nullopt),
        gbs(k.bytes > 0 ? ratio(k.bytes, k.median_ms * 1e6) : std::nullopt),
        bandwidth_percent(gbs ? ratio(100 * *gbs, peaks.bandwidth_gbs) : std::nullopt) {}

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

/// Calls act(name, GFLOP/s) for each unit that was probed.
template <typename Act>
void for_each_unit(const PeakRates& peaks, const Act& act) {
  for (const DotRateRow& row : kDotRates) {
    if (peaks.dots.*row.rate > 0) act(row.name, peaks.gflops * peaks.dots.*row.rate);
  }
  for (const TensorRateRow& row : kTensorRates) {
    if (peaks.tensor.*row.rate > 0) act(row.name, peaks.tensor.*row.rate);
  }
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
  std::string table =
      fmt::format("{:>4} {:>10} {:>6} {:>9} {:>7} {:>8} {:>7}  {:<13}  {:<{}}  {}\n",
                  "ID",
                  "Time (ms)",
                  "%",
                  "GFLOP/s",
                  "% peak",
                  "GB/s",
                  "% mem.",
                  "Precision",
                  "Sketch",
                  width,
                  "Kernel");
  const auto add_line = [&](const std::string& id, const KernelTime& k, auto ideal_ms) {
    const Rates rates(k, ideal_ms, peaks);
    table += fmt::format("{:>4} {:>10.4f} {:>6} {:>9} {:>7} {:>8} {:>7}  {:<13}  {:<{}}  {}\n",
                         id,
                         k.median_ms,
                         number(ratio(100 * k.median_ms, total.median_ms)),
                         number(rates.gflops),
                         number(rates.peak_percent),
                         number(rates.gbs),
                         number(rates.bandwidth_percent),
                         k.precision.empty() ? "-" : k.precision,
                         k.sketch,
                         width,
                         k.name);
  };
  std::optional<double> all_ms;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const std::optional<double> ideal = ideal_ms(kernels[i], peaks);
    if (ideal) all_ms = all_ms.value_or(0) + *ideal;
    add_line(std::to_string(i), kernels[i], ideal);
  }
  add_line("all", total, all_ms);
  return peaks.gflops > 0 ? table + print(peaks) + "\n" : table;
}

std::string print(const PeakRates& peaks) {
  std::string units;
  for_each_unit(peaks, [&](std::string_view name, double gflops) {
    units += fmt::format("{:.1f} of {}, ", gflops, name);
  });
  return fmt::format(
      "Peak: {:.1f} GFLOP/s of fused multiply-adds, {}{:.1f} GB/s read from memory, {}",
      peaks.gflops,
      units,
      peaks.bandwidth_gbs,
      peaks.threads > 0 ? fmt::format("on {} threads", peaks.threads) : "on the device");
}

Json to_json(const PeakRates& peaks) {
  Json units = Json::object();
  for_each_unit(peaks, [&](std::string_view name, double gflops) { units[name] = gflops; });
  return {{"peak_gflops", peaks.gflops},
          {"unit_gflops", units},
          {"bandwidth_gbs", peaks.bandwidth_gbs},
          {"threads", peaks.threads}};
}

Json profile_json(std::span<const KernelTime> kernels, const PeakRates& peaks) {
  Json json = to_json(peaks);
  json["kernels"] = Json::array();
  for (const KernelTime& k : kernels) {
    const Rates rates(k, ideal_ms(k, peaks), peaks);
    json["kernels"].push_back({{"name", k.name},
                               {"sketch", k.sketch},
                               {"precision", k.precision.empty() ? Json() : Json(k.precision)},
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
