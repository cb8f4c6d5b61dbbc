// Speed of generated kernels (GFLOPS of one thread) and the time from Program to object, to be read
// beside the peak of the machine: nothing here is bound by memory. PRUNER_MCPU chooses another CPU.
#include <benchmark/benchmark.h>

#include <cstdlib>

#include "codegen/codegen.h"
#include "codegen/kernels.h"
#include "codegen/loader.h"

namespace pruner {
namespace {

struct Row {
  const char* name;
  Program program;
  double flops;
};

Row matmul(const char* name, int rows, int vectors, int lanes, int unroll, bool packed_a = false) {
  const int64_t columns = int64_t{vectors} * lanes;
  const MatmulShape s = {1024 / rows * rows,
                         1024 / columns * columns,
                         1024,
                         256,
                         rows,
                         vectors,
                         lanes,
                         unroll,
                         packed_a};
  return {name, matmul_program(s), 2.0 * static_cast<double>(s.m * s.n * s.k)};
}

Row conv(const char* name, int width, int vectors, int lanes, int unroll) {
  return {name,
          conv_program({64, 56, 56, 64, width, vectors, lanes, unroll}),
          2.0 * 56 * 56 * 64 * 64 * 9};
}

Target target() {
  const char* mcpu = std::getenv("PRUNER_MCPU");
  return cpu_target(mcpu ? mcpu : "");
}

std::vector<Row> rows() {
  if (target().mcpu == "haswell") {
    return {conv("conv 4x2", 4, 2, 8, 4),
            conv("conv 7x1", 7, 1, 8, 4),
            matmul("matmul 6x16", 6, 2, 8, 4),
            matmul("matmul 4x24", 4, 3, 8, 4)};
  }
  return {conv("conv 14x2", 14, 2, 16, 4),
          conv("conv 14x1, no unrolling", 14, 1, 16, 1),
          conv("conv 28x1", 28, 1, 16, 4),
          conv("conv 14x2, 448 FMAs", 14, 2, 16, 16),
          matmul("matmul 4x64", 4, 4, 16, 4),
          matmul("matmul 8x32", 8, 2, 16, 4),
          matmul("matmul 6x48", 6, 3, 16, 4),
          matmul("matmul 14x32, A packed", 14, 2, 16, 4, true)};
}

void compile_kernel(benchmark::State& state) {
  const Row row = rows()[static_cast<size_t>(state.range(0))];
  state.SetLabel(row.name);
  for (auto unused : state) benchmark::DoNotOptimize(compile(row.program, target(), "kernel"));
}

void run_kernel(benchmark::State& state) {
  const Row row = rows()[static_cast<size_t>(state.range(0))];
  state.SetLabel(row.name);
  const Result<Artifact> artifact = compile(row.program, target(), "kernel");
  if (!artifact.ok()) return state.SkipWithError(artifact.error().message().c_str());
  const auto kernel = load_kernel(artifact->object, "kernel");
  if (!kernel.ok()) return state.SkipWithError(kernel.error().message().c_str());
  std::vector<Tensor> args;
  for (const TensorId id : row.program.args) {
    args.emplace_back(row.program[id].dtype, row.program[id].shape);
    for (float& v : args.back().values<float>()) v = 1;
  }
  for (auto unused : state) call_kernel((*kernel)->entry(), args, row.program.workspace_bytes);
  state.counters["GFLOPS"] =
      benchmark::Counter(row.flops * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

void every_row(auto* benchmark) {
  for (size_t i = 0; i < rows().size(); ++i) benchmark->Arg(static_cast<int64_t>(i));
  benchmark->Unit(benchmark::kMillisecond);
}
BENCHMARK(compile_kernel)->Apply(every_row);
BENCHMARK(run_kernel)->Apply(every_row);

}  // namespace
}  // namespace pruner
