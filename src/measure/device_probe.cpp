#include "measure/device_probe.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "measure/gpu_probe.h"
#include "measure/measure.h"
#include "runtime/thread_pool.h"
#include "target/dot_rates.h"

namespace pruner {

namespace {

double to_tenth(double value) { return std::round(value * 10) / 10; }

/// A rate of one core in units per second, to 0.1e9.
double rate_of_core(double giga_per_second, int threads) {
  return std::round(giga_per_second / threads * 10) * 1e8;
}

/// Bytes of all threads together that a cache holds and the one before it does not.
int64_t between(int64_t before, int64_t cache, int threads) {
  return before < cache ? (before + cache) / 2 * threads : 0;
}

Result<Target> probe_cpu(Target target, double seconds) {
  TRY(check_measurable(target));
  const int threads = target.threads;
  Target whole = target;  // with every unit, also those that nothing is known of
  for (const DotRateRow& row : kDotRates) whole.dots.*row.rate = has_dots(target, row) ? 1 : 0;
  const PeakRates peaks = probe_peaks(whole, seconds);
  if (peaks.gflops <= 0 || peaks.bandwidth_gbs <= 0)
    return Error("no ", threads, " threads, or no memory for them to read");
  target.peak_flops = rate_of_core(peaks.gflops, threads);
  target.dram_bandwidth = rate_of_core(peaks.bandwidth_gbs, 1);
  for (const DotRateRow& row : kDotRates) {
    if (peaks.dots.*row.rate > 0)
      target.dots.*row.rate = std::clamp(to_tenth(peaks.dots.*row.rate), 0.1, kMostDotRate);
  }
  struct Level {
    double Target::*bandwidth;
    int64_t bytes;
  };
  // A level that no working set reaches has the rate of the next one.
  double next = rate_of_core(peaks.bandwidth_gbs, threads);
  for (const auto& [bandwidth, bytes] :
       {Level{&Target::l3_bandwidth, between(target.l2_bytes, target.l3_bytes / threads, threads)},
        Level{&Target::l2_bandwidth, between(target.l1_bytes, target.l2_bytes, threads)},
        Level{&Target::l1_bandwidth, between(0, target.l1_bytes, threads)}}) {
    if (bytes > 0) next = rate_of_core(probe_read_gbs(bytes, threads, seconds / 4), threads);
    target.*bandwidth = next;
  }
  target.launch_s = std::max(std::round(probe_fork_join_s(threads, seconds / 4) * 1e9), 1.0) * 1e-9;
  target.source = "measured by pruner device probe on " + device_fingerprint(target);
  return target;
}

}  // namespace

double probe_fork_join_s(int threads, double seconds) {
  using Clock = std::chrono::steady_clock;
  const ThreadPool pool = make_thread_pool(threads, true);
  if (pool == nullptr) return 0;
  std::vector<double> times;
  const auto since = [](Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  const auto start = Clock::now();
  do {
    Meeting meeting(threads);  // else the caller takes over the part of who comes late
    const auto begin = Clock::now();
    parallel_for(*pool, threads, [&](int64_t, int64_t) { meeting.arrive_and_wait(); });
    times.push_back(since(begin));
  } while (since(start) < seconds);
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

Result<Target> probe_device(const Target& target, double seconds) {
  return target.is_gpu() ? probe_gpu(target, seconds) : probe_cpu(target, seconds);
}

}  // namespace pruner
