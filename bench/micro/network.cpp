// What learned models cost: programs scored a second, on one core and on two. Each program has
// `rows` statement rows (3 to 6 are typical) and, for PaCM, the data flow of a contraction. The
// bar: 20,000 candidates/s for PaCM on two cores.
#include "model/nn/network.h"

#include <benchmark/benchmark.h>

#include "model/checkpoints.h"
#include "support/rng.h"

namespace pruner {
namespace {

void score(benchmark::State& state, Architecture architecture) {
  const Network network(random_weights(architecture, 1));
  Rng rng(2);
  std::vector<ProgramFeatures> programs(4096);
  for (ProgramFeatures& program : programs) {
    program.rows.resize(static_cast<size_t>(state.range(0) * kRowFeatures));
    for (float& v : program.rows) v = static_cast<float>(rng.uniform());
    for (float& v : program.dataflow) v = static_cast<float>(rng.uniform());
  }
  for (auto _ : state)
    benchmark::DoNotOptimize(network.predict(programs, static_cast<int>(state.range(1))));
  state.counters["candidates/s"] = benchmark::Counter(
      static_cast<double>(programs.size()), benchmark::Counter::kIsIterationInvariantRate);
}

void ScorePacm(benchmark::State& state) { score(state, Architecture::kPacm); }
void ScoreTenSetMlp(benchmark::State& state) { score(state, Architecture::kTenSetMlp); }

BENCHMARK(ScorePacm)
    ->ArgNames({"rows", "cores"})
    ->ArgsProduct({{3, 4, 6}, {1, 2}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(ScoreTenSetMlp)
    ->ArgNames({"rows", "cores"})
    ->ArgsProduct({{4}, {1, 2}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace pruner
