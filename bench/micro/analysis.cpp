// Measures the cost of a candidate's analysis, on one core, with the loop nest: the statements, the
// released draft score (the bar: 10 microseconds), the draft of the target, and all features (50).
// Gpu...: on a GPU.
#include <benchmark/benchmark.h>

#include "analysis/draft.h"
#include "analysis/features.h"
#include "analysis/symbols.h"
#include "drawn_candidates.h"

namespace pruner {
namespace {

struct Fixture : DrawnCandidates {
  Fixture(int64_t op, bool gpu)
      : DrawnCandidates(op, gpu ? *parse_target("cuda --arch=sm_80", 0) : host_target(2)),
        flags(task_flags(task.dag)) {}
  LoopNest nest() { return make_loop_nest(space, next()); }

  TaskFlags flags;
};

template <bool gpu>
void Nest(benchmark::State& state) {
  Fixture f(state.range(0), gpu);
  for (auto _ : state) benchmark::DoNotOptimize(f.nest());
}

template <bool gpu>
void NestStatements(benchmark::State& state) {
  Fixture f(state.range(0), gpu);
  for (auto _ : state) benchmark::DoNotOptimize(make_statements(f.nest()));
}

template <bool gpu>
void ReleaseScore(benchmark::State& state) {
  Fixture f(state.range(0), gpu);
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        release_latency_ms(symbols(make_statements(f.nest())), f.task.target.gpu.psa));
  }
}

template <bool gpu>
void DraftSeconds(benchmark::State& state) {
  Fixture f(state.range(0), gpu);
  for (auto _ : state) benchmark::DoNotOptimize(draft_latency_s(f.nest(), f.task.target));
}

template <bool gpu>
void Features(benchmark::State& state) {
  Fixture f(state.range(0), gpu);
  for (auto _ : state) benchmark::DoNotOptimize(features(make_statements(f.nest()), f.flags));
}

BENCHMARK(Nest<false>)->DenseRange(0, 3)->Unit(benchmark::kMicrosecond);
BENCHMARK(Nest<true>)->DenseRange(0, 5)->Unit(benchmark::kMicrosecond);
BENCHMARK(NestStatements<false>)->DenseRange(0, 3)->Unit(benchmark::kMicrosecond);
BENCHMARK(NestStatements<true>)->DenseRange(0, 5)->Unit(benchmark::kMicrosecond);
BENCHMARK(ReleaseScore<true>)->DenseRange(0, 3)->Unit(benchmark::kMicrosecond);
BENCHMARK(DraftSeconds<false>)->DenseRange(0, 3)->Unit(benchmark::kMicrosecond);
BENCHMARK(DraftSeconds<true>)->DenseRange(0, 5)->Unit(benchmark::kMicrosecond);
BENCHMARK(Features<false>)->DenseRange(0, 3)->Unit(benchmark::kMicrosecond);
BENCHMARK(Features<true>)->DenseRange(0, 5)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace pruner
