// Measures what it costs to check a GPU program without a GPU: the interpreter, with its checks of
// all bounds and races. Items are multiply-adds.
#include <benchmark/benchmark.h>

#include "lower/gpu_programs.h"

namespace pruner {
namespace {

void InterpretMatmul(benchmark::State& state) {
  const GpuMatmul shape{.m = 32,
                        .n = 32,
                        .k = 32,
                        .threads_m = state.range(0),
                        .vthreads = 1,
                        .lanes = state.range(0) == 32 ? 2 : 4};
  const Program program = gpu_matmul(shape);
  std::vector<Tensor> args = gpu_arguments(program);
  for (auto _ : state) {
    if (!interpret(program, args).ok()) state.SkipWithError("a wrong program");
  }
  state.SetItemsProcessed(state.iterations() * shape.m * shape.n * shape.k);
}

BENCHMARK(InterpretMatmul)->Arg(4)->Arg(8)->Arg(32);  // rows of 8 threads

}  // namespace
}  // namespace pruner
