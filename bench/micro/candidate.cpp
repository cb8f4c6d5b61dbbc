// What the search pays for each candidate, on one core: a draw, a copy, its loop nest, legality,
// the draft score, and lowering (for the few that are measured). Gpu...: the same on a GPU.
#include <benchmark/benchmark.h>

#include "analysis/draft.h"
#include "lower/lower.h"
#include "tensor/operators.h"

namespace pruner {
namespace {

constexpr const char* kOperators[] = {
    "matmul 512 512 512",
    "conv2d 1 64 56 56 64 3 3 padding=1 +bias +relu",
    "depthwise_conv2d 1 32 112 112 3 3 padding=1 +bias +relu",
    "softmax 1536 128",
};

struct Fixture {
  explicit Fixture(int64_t op, const Target& target = host_target(2))
      : task(make_task(*parse_operator(kOperators[op]), target, kOperators[op])),
        space(make_space(task)) {
    Rng rng(1);
    for (int i = 0; i < 256; ++i) candidates.push_back(sample(space, rng));
  }
  const Candidate& next() { return candidates[++at % candidates.size()]; }

  Task task;
  Space space;
  std::vector<Candidate> candidates;
  size_t at = 0;
};

void Sample(benchmark::State& state) {
  Fixture f(state.range(0));
  Rng rng(2);
  for (auto _ : state) benchmark::DoNotOptimize(sample(f.space, rng));
}

void Copy(benchmark::State& state) {
  Fixture f(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(Candidate(f.next()));
}

void LegalityAndNest(benchmark::State& state) {
  Fixture f(state.range(0));
  for (auto _ : state) {
    const Candidate& candidate = f.next();
    benchmark::DoNotOptimize(is_legal(f.space, candidate));
    benchmark::DoNotOptimize(make_loop_nest(f.space, candidate));
  }
}

// The bar: at most 10 microseconds, nest included.
void DraftScore(benchmark::State& state) {
  Fixture f(state.range(0));
  for (auto _ : state)
    benchmark::DoNotOptimize(draft_latency_s(make_loop_nest(f.space, f.next()), f.task.target));
}

Fixture gpu_fixture(int64_t op) { return Fixture(op, *parse_target("cuda --arch=sm_80", 0)); }

void GpuSample(benchmark::State& state) {
  const Fixture f = gpu_fixture(state.range(0));
  Rng rng(2);
  for (auto _ : state) benchmark::DoNotOptimize(sample(f.space, rng));
}

// The bar: at most 20 microseconds.
void GpuLegalityAndNest(benchmark::State& state) {
  Fixture f = gpu_fixture(state.range(0));
  for (auto _ : state) {
    const Candidate& candidate = f.next();
    benchmark::DoNotOptimize(is_legal(f.space, candidate));
    benchmark::DoNotOptimize(make_loop_nest(f.space, candidate));
  }
}

// The bar: at most 10 microseconds, nest included.
void GpuDraftScore(benchmark::State& state) {
  Fixture f = gpu_fixture(state.range(0));
  for (auto _ : state)
    benchmark::DoNotOptimize(draft_latency_s(make_loop_nest(f.space, f.next()), f.task.target));
}

void Lower(benchmark::State& state) {
  Fixture f(state.range(0));
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

}  // namespace
}  // namespace pruner
