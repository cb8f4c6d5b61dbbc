// What the search pays for each candidate's analysis, on one core, its loop nest included: the
// statements, the released draft score (the bar: 10 microseconds), the draft of the target, all
// features (50). Gpu...: on a GPU.
#include <benchmark/benchmark.h>

#include "analysis/draft.h"
#include "analysis/features.h"
#include "analysis/symbols.h"
#include "space/space.h"
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
  Fixture(int64_t op, bool gpu)
      : task(make_task(*parse_operator(kOperators[op]),
                       gpu ? *parse_target("cuda --arch=sm_80", 0) : host_target(2),
                       kOperators[op])),
        space(make_space(task)),
        flags(task_flags(task.dag)) {
    Rng rng(1);
    for (int i = 0; i < 256; ++i) candidates.push_back(sample(space, rng));
  }
  LoopNest nest() { return make_loop_nest(space, candidates[++at % candidates.size()]); }

  Task task;
  Space space;
  TaskFlags flags;
  std::vector<Candidate> candidates;
  size_t at = 0;
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
BENCHMARK(Nest<true>)->DenseRange(0, 3)->Unit(benchmark::kMicrosecond);
BENCHMARK(NestStatements<false>)->DenseRange(0, 3)->Unit(benchmark::kMicrosecond);
BENCHMARK(NestStatements<true>)->DenseRange(0, 3)->Unit(benchmark::kMicrosecond);
BENCHMARK(ReleaseScore<true>)->DenseRange(0, 3)->Unit(benchmark::kMicrosecond);
BENCHMARK(DraftSeconds<false>)->DenseRange(0, 3)->Unit(benchmark::kMicrosecond);
BENCHMARK(DraftSeconds<true>)->DenseRange(0, 3)->Unit(benchmark::kMicrosecond);
BENCHMARK(Features<false>)->DenseRange(0, 3)->Unit(benchmark::kMicrosecond);
BENCHMARK(Features<true>)->DenseRange(0, 3)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace pruner
