#include "deploy/run_times.h"

#include <algorithm>
#include <cmath>

namespace pruner {

double percentile(std::vector<double> values, double percent) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const double place = percent / 100 * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], place - static_cast<double>(below));
}

BenchResult summarize(std::span<const double> runs_s, int warm_up) {
  BenchResult result;
  result.runs = static_cast<int>(runs_s.size());
  result.warm_up = warm_up;
  if (runs_s.empty()) return result;
  std::vector<double> ms;
  for (const double s : runs_s) ms.push_back(s * 1e3);
  std::ranges::sort(ms);
  result.min_ms = ms.front();
  result.max_ms = ms.back();
  result.median_ms = percentile(ms, 50);
  result.p90_ms = percentile(ms, 90);
  result.p99_ms = percentile(ms, 99);
  for (const double each : ms) result.mean_ms += each / result.runs;
  for (const double each : ms) result.std_ms += std::pow(each - result.mean_ms, 2);
  result.std_ms = result.runs > 1 ? std::sqrt(result.std_ms / (result.runs - 1)) : 0;
  return result;
}

}  // namespace pruner
