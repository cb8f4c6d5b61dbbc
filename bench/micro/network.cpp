// Measures what learned models cost: programs scored, and trained on, a second, on one core and on
// two. Each program has `rows` statement rows (3 to 6 are typical) and, for PaCM, the data flow of
// a contraction. The bars on two cores: 20,000 candidates/s for PaCM, 5,000 for TLP, which scores
// drawn candidates of an operator.

#include <benchmark/benchmark.h>

#include "analysis/primitives.h"
#include "ansor/own_steps.h"
#include "drawn_candidates.h"
#include "model/checkpoints.h"
#include "model/nn/network.h"
#include "model/train.h"
#include "support/rng.h"

namespace pruner {
namespace {

std::vector<ProgramFeatures> random_programs(size_t count, int64_t rows) {
  Rng rng(2);
  std::vector<ProgramFeatures> programs(count);
  for (ProgramFeatures& program : programs) {
    program.rows.resize(static_cast<size_t>(rows * kRowFeatures));
    for (float& v : program.rows) v = static_cast<float>(rng.uniform());
    for (float& v : program.dataflow) v = static_cast<float>(rng.uniform());
  }
  return programs;
}

void score(benchmark::State& state, const Architecture& architecture) {
  const Network network(random_weights(architecture, 1));
  const std::vector<ProgramFeatures> programs = random_programs(4096, state.range(0));
  for (auto _ : state)
    benchmark::DoNotOptimize(network.predict(programs, static_cast<int>(state.range(1))));
  state.counters["candidates/s"] = benchmark::Counter(
      static_cast<double>(programs.size()), benchmark::Counter::kIsIterationInvariantRate);
}

void ScorePacm(benchmark::State& state) { score(state, kPacm); }
void ScoreTenSetMlp(benchmark::State& state) { score(state, kTenSetMlp); }

void ScoreTlp(benchmark::State& state) {
  const Network network(random_weights(kTlp, 1));
  const DrawnCandidates drawn(state.range(0));
  Rng rng(1);
  std::vector<ProgramFeatures> programs(1024);
  for (ProgramFeatures& program : programs)
    program.primitives = primitives(ansor::steps_of(drawn.space, sample(drawn.space, rng)));
  for (auto _ : state)
    benchmark::DoNotOptimize(network.predict(programs, static_cast<int>(state.range(1))));
  state.counters["candidates/s"] = benchmark::Counter(
      static_cast<double>(programs.size()), benchmark::Counter::kIsIterationInvariantRate);
}

void ReadPrimitives(benchmark::State& state) {
  DrawnCandidates drawn(state.range(0));
  for (auto _ : state)
    benchmark::DoNotOptimize(primitives(ansor::steps_of(drawn.space, drawn.next())));
}

// One epoch over 2,048 programs of 20 tasks, as at the end of a run over a network.
void TrainPacm(benchmark::State& state) {
  std::vector<TrainingSample> samples;
  for (ProgramFeatures& program : random_programs(2048, state.range(0)))
    samples.push_back({.task = static_cast<int32_t>(samples.size() % 20),
                       .features = std::move(program),
                       .latency_s = 1e-3 * static_cast<double>(1 + samples.size() * 7919 % 97)});
  const TrainOptions options = {
      .epochs = 1, .validation_share = 0, .threads = static_cast<int>(state.range(1))};
  const ModelWeights start = initial_weights(kPacm, 1);
  const Result<Trained> loaded = train(start, samples, options);  // LibTorch takes a second to load
  if (!loaded.ok()) return state.SkipWithError(loaded.error().message().c_str());
  for (auto _ : state) benchmark::DoNotOptimize(train(start, samples, options));
  state.counters["programs/s"] = benchmark::Counter(static_cast<double>(samples.size()),
                                                    benchmark::Counter::kIsIterationInvariantRate);
}

BENCHMARK(TrainPacm)
    ->ArgNames({"rows", "cores"})
    ->ArgsProduct({{4}, {1, 2}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(ScorePacm)
    ->ArgNames({"rows", "cores"})
    ->ArgsProduct({{3, 4, 6}, {1, 2}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(ReadPrimitives)->ArgName("operator")->DenseRange(0, 3);
BENCHMARK(ScoreTlp)
    ->ArgNames({"operator", "cores"})
    ->ArgsProduct({{0, 1, 2, 3}, {1, 2}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(ScoreTenSetMlp)
    ->ArgNames({"rows", "cores"})
    ->ArgsProduct({{4}, {1, 2}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace pruner
