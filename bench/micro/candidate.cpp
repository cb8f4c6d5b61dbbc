// Measures a candidate's cost in the search, on one core: a draw, a copy, its loop nest, legality
// and the draft score. Lowering is for the few that are measured. Gpu...: the same on a GPU.
#include <benchmark/benchmark.h>

#include "analysis/draft.h"
#include "drawn_candidates.h"
#include "lower/lower.h"

namespace pruner {
namespace {

void Sample(benchmark::State& state) {
  DrawnCandidates f(state.range(0));
  Rng rng(2);
  for (auto _ : state) benchmark::DoNotOptimize(sample(f.space, rng));
}

void Copy(benchmark::State& state) {
  DrawnCandidates f(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(Candidate(f.next()));
}

void LegalityAndNest(benchmark::State& state) {
  DrawnCandidates f(state.range(0));
  for (auto _ : state) {
    const Candidate& candidate = f.next();
    benchmark::DoNotOptimize(is_legal(f.space, candidate));
    benchmark::DoNotOptimize(make_loop_nest(f.space, candidate));
  }
}

// The bar: at most 10 microseconds, nest included.
void DraftScore(benchmark::State& state) {
  DrawnCandidates f(state.range(0));
  for (auto _ : state)
    benchmark::DoNotOptimize(draft_latency_s(make_loop_nest(f.space, f.next()), f.task.target));
}

DrawnCandidates drawn_for_gpu(int64_t op) {
  return DrawnCandidates(op, *parse_target("cuda --arch=sm_80", 0));
}

void GpuSample(benchmark::State& state) {
  const DrawnCandidates f = drawn_for_gpu(state.range(0));
  Rng rng(2);
  for (auto _ : state) benchmark::DoNotOptimize(sample(f.space, rng));
}

// The bar: at most 20 microseconds.
void GpuLegalityAndNest(benchmark::State& state) {
  DrawnCandidates f = drawn_for_gpu(state.range(0));
  for (auto _ : state) {
    const Candidate& candidate = f.next();
    benchmark::DoNotOptimize(is_legal(f.space, candidate));
    benchmark::DoNotOptimize(make_loop_nest(f.space, candidate));
  }
}

// The bar: at most 10 microseconds, nest included.
void GpuDraftScore(benchmark::State& state) {
  DrawnCandidates f = drawn_for_gpu(state.range(0));
  for (auto _ : state)
    benchmark::DoNotOptimize(draft_latency_s(make_loop_nest(f.space, f.next()), f.task.target));
}

void Lower(benchmark::State& state) {
  DrawnCandidates f(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(lower(f.space, f.next(), "k"));
}

void GpuLower(benchmark::State& state) {
  DrawnCandidates f = drawn_for_gpu(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(lower(f.space, f.next(), "k"));
}

BENCHMARK(Sample)->DenseRange(0, 3)->Unit(benchmark::kMicrosecond);
BENCHMARK(Copy)->DenseRange(0, 3);
BENCHMARK(LegalityAndNest)->DenseRange(0, 3)->Unit(benchmark::kMicrosecond);
BENCHMARK(DraftScore)->DenseRange(0, 3)->Unit(benchmark::kMicrosecond);
BENCHMARK(GpuSample)->DenseRange(0, 3)->Unit(benchmark::kMicrosecond);
BENCHMARK(GpuLegalityAndNest)->DenseRange(0, 3)->Unit(benchmark::kMicrosecond);
BENCHMARK(GpuDraftScore)->DenseRange(0, 3)->Unit(benchmark::kMicrosecond);
BENCHMARK(Lower)->DenseRange(0, 3)->Unit(benchmark::kMicrosecond);
BENCHMARK(GpuLower)->DenseRange(0, 3)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace pruner
