// Measures what a record of Ansor costs on one core. The record's line, steps, loop nest, TVM text,
// statements and features are timed.
#include <benchmark/benchmark.h>

#include "analysis/features.h"
#include "ansor/workload_table.h"
#include "record/record.h"

namespace pruner {
namespace {

// A matmul on a GPU: cache write, two cache reads, tiles of five levels, cooperative fetch.
constexpr const char* kLine =
    R"json({"i": [["[\"matmul_layer\", 512, 512, 512]", "cuda", [-1, 16, 64, 49152, 2147483647, )json"
    R"json(1024, 8, 32], "", 0, []], [[], [["CHW", 2, "local"], ["SP", 2, 0, 512, [2, 128, 1, 1], 1], )json"
    R"json(["SP", 2, 5, 512, [2, 4, 1, 1], 1], ["SP", 2, 10, 512, [2, 4], 1], )json"
    R"json(["RE", 2, [0, 5, 1, 6, 2, 7, 10, 11, 3, 8, 12, 4, 9]], ["FSP", 3, 0, 1, 3], )json"
    R"json(["FSP", 3, 4, 2, 3], ["RE", 3, [0, 4, 1, 5, 2, 6, 3, 7]], ["CA", 2, 3, 5], )json"
    R"json(["CHR", 1, "shared", [2]], ["CA", 2, 3, 6], ["CHR", 0, "shared", [3]], ["CA", 1, 4, 6], )json"
    R"json(["FU", 5, [0, 1]], ["AN", 5, 0, 5], ["FU", 5, [1, 2]], ["AN", 5, 1, 4], )json"
    R"json(["FU", 5, [2, 3]], ["AN", 5, 2, 6], ["FU", 3, [0, 1]], ["SP", 3, 0, 8, [1], 1], )json"
    R"json(["AN", 3, 1, 2], ["FFSP", 3, 0, [2, 1], 1, 1], ["AN", 3, 1, 6], ["FU", 1, [0, 1]], )json"
    R"json(["SP", 1, 0, 16, [1], 1], ["AN", 1, 1, 2], ["FFSP", 1, 0, [2, 1], 1, 1], )json"
    R"json(["AN", 1, 1, 6], ["PR", 4, 0, "auto_unroll_max_step$512"]]]], )json"
    R"json("r": [[0.001], 0, 1.5, 1639461739], "v": "v0.6"})json";

struct Fixture {
  Fixture() : record(*parse_line(kLine)), steps(*ansor::steps_from_json(record.steps[1])) {}
  ansor::ReplayNest nest() { return *ansor::replay(workloads.find(record.workload_key), steps); }

  Record record;
  std::vector<ansor::Step> steps;
  ansor::WorkloadTable workloads;
};

void RecordLine(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(parse_line(kLine));
}

void RecordSteps(benchmark::State& state) {
  Fixture f;
  for (auto _ : state) benchmark::DoNotOptimize(ansor::steps_from_json(f.record.steps[1]));
}

void RecordNest(benchmark::State& state) {
  Fixture f;
  for (auto _ : state) benchmark::DoNotOptimize(f.nest());
}

void RecordProgram(benchmark::State& state) {
  Fixture f;
  const ansor::ReplayNest nest = f.nest();
  for (auto _ : state) benchmark::DoNotOptimize(ansor::print_program(nest));
}

void RecordStatements(benchmark::State& state) {
  Fixture f;
  const ansor::ReplayNest nest = f.nest();
  for (auto _ : state) benchmark::DoNotOptimize(make_statements(nest));
}

void RecordFeatures(benchmark::State& state) {
  Fixture f;
  const Statements program = make_statements(f.nest());
  for (auto _ : state) benchmark::DoNotOptimize(features(program, {}));
}

BENCHMARK(RecordLine)->Unit(benchmark::kMicrosecond);
BENCHMARK(RecordSteps)->Unit(benchmark::kMicrosecond);
BENCHMARK(RecordNest)->Unit(benchmark::kMicrosecond);
BENCHMARK(RecordProgram)->Unit(benchmark::kMicrosecond);
BENCHMARK(RecordStatements)->Unit(benchmark::kMicrosecond);
BENCHMARK(RecordFeatures)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace pruner
