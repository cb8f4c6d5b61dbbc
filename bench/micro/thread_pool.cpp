// Fork and join: of an empty body (the caller may take over all of it), of one in which every
// thread waits for all others (all have to come), and of 20 us of work a thread; back to back, and
// with a gap in which the caller works alone. p50 and p90 are of a call, less the 20 us.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <vector>

#include "pruner/kernel.h"

namespace {

using Clock = std::chrono::steady_clock;

void spin_for(std::chrono::microseconds time) {
  for (const auto end = Clock::now() + time; Clock::now() < end;) {
  }
}

struct Meeting {
  std::atomic<int64_t> arrived;
  int64_t expected;
};

void empty(void*, int64_t, int64_t) {}
void meet(void* closure, int64_t, int64_t) {
  auto& meeting = *static_cast<Meeting*>(closure);
  meeting.arrived++;
  while (meeting.arrived.load() < meeting.expected) {
  }
}
void work_20us(void*, int64_t, int64_t) { spin_for(std::chrono::microseconds(20)); }

void fork_join(benchmark::State& state, PrunerBody body, double work_us) {
  PrunerPool* pool = pruner_pool_create(static_cast<int32_t>(state.range(0)),
                                        static_cast<int32_t>(state.range(2)));
  std::vector<double> times_us;
  for (auto _ : state) {
    spin_for(std::chrono::microseconds(state.range(1)));
    Meeting meeting{0, pool->threads};
    const auto start = Clock::now();
    pool->parallel_for(pool, body, &meeting, pool->threads);
    const std::chrono::duration<double> elapsed = Clock::now() - start;
    state.SetIterationTime(elapsed.count());
    times_us.push_back(elapsed.count() * 1e6 - work_us);
  }
  pruner_pool_destroy(pool);
  std::sort(times_us.begin(), times_us.end());
  state.counters["p50_us"] = times_us[times_us.size() / 2];
  state.counters["p90_us"] = times_us[times_us.size() * 9 / 10];
}

void configure(benchmark::internal::Benchmark* b) {
  b->ArgNames({"threads", "gap_us", "pin"})->ArgsProduct({{2}, {0, 50, 2000}, {0, 1}});
  b->UseManualTime()->Unit(benchmark::kMicrosecond)->Iterations(1000);
}
BENCHMARK_CAPTURE(fork_join, empty, empty, 0)->Apply(configure);
BENCHMARK_CAPTURE(fork_join, meeting, meet, 0)->Apply(configure);
BENCHMARK_CAPTURE(fork_join, work_20us, work_20us, 20)->Apply(configure);

}  // namespace
