// A module (build_module()) loaded into this process: run on tensors, timed, profiled.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "deploy/run_times.h"
#include "deploy/tensor_file.h"
#include "support/result.h"
#include "tensor/symbol.h"

namespace pruner {

/// A kernel of the module, in execution order: what it has to do (PrunerKernelSpec), which of a
/// module of several shapes is known at the greatest alone and else 0, and its time.
struct KernelTime {
  std::string name, sketch;
  double flops = 0, bytes = 0;  // without bytes both are not known, as of another shape
  double median_ms = 0;
  std::string precision = {};  // "float32", a name of kDotRates or kTensorRates; empty: not known
};

/// A run by the clock of the host, and what its kernels, one after the other, took of it.
struct TracedRun {
  double run_s = 0;
  std::vector<KernelTime> kernels;
};

/// What a phase takes and gives.
struct TensorSpecs {
  std::vector<TensorSpec> inputs, outputs;
};

/// Owns the library and one instance; one call at a time.
class LoadedModule {
 public:
  LoadedModule(LoadedModule&&) noexcept;
  LoadedModule& operator=(LoadedModule&&) noexcept;
  ~LoadedModule();

  /// What it can run; below, a number of one chooses it.
  std::vector<std::string> phases() const;
  const std::vector<TensorSpec>& inputs(int phase = 0) const;
  const std::vector<TensorSpec>& outputs(int phase = 0) const;
  /// What the instance keeps from run to run, and its content; reset() makes it zeros again.
  const std::vector<TensorSpec>& states() const;
  std::vector<Tensor> read_states() const;
  void reset();
  /// Its dimensions, where it was compiled with some; then inputs() and outputs() are of the
  /// greatest shape, and what is given tensors runs at theirs.
  const std::vector<Symbol>& symbols() const;
  /// The tensors of a phase where the symbols have these extents. The error names the one that is
  /// out of its range.
  Result<TensorSpecs> specs_at(std::span<const int64_t> extents, int phase = 0) const;
  int threads() const;  // 0: it runs on a GPU
  /// pruner_module_checked(); empty: the module is too old to say.
  std::string checked() const;
  /// pruner_module_numerics(); empty: the module is too old to say.
  std::string numerics() const;
  /// KernelTime::precision of each kernel of all phases.
  std::vector<std::string> precisions() const;

  /// Outputs in the order of outputs(), which has the greatest extents of those that the data
  /// decide. The error names an input that does not fit its spec.
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs, int phase = 0);
  /// Times of whole runs, by the clock of the host.
  Result<BenchResult> bench(std::span<const Tensor> inputs,
                            const BenchOptions& options,
                            int phase = 0);
  /// Seconds of each timed run.
  Result<std::vector<double>> time_runs(std::span<const Tensor> inputs,
                                        const BenchOptions& options,
                                        int phase = 0);
  /// One entry a kernel.
  Result<std::vector<KernelTime>> profile(std::span<const Tensor> inputs,
                                          const BenchOptions& options,
                                          int phase = 0);
  /// Of a GPU's module: seconds of all its kernels in a row, without the copies of inputs and
  /// outputs, the median of several. Errors: not known of this device, or the module is too old.
  Result<double> time_kernels(std::span<const Tensor> inputs, int times);
  /// One run, after one that is not timed.
  Result<TracedRun> trace(std::span<const Tensor> inputs, int phase = 0);

 private:
  struct State;
  explicit LoadedModule(std::unique_ptr<State> state);
  friend Result<LoadedModule> load_module(const std::string& path, int threads);
  std::unique_ptr<State> state_;
};

/// Loads a module with an instance of `threads` threads (0: the number it was tuned for). Errors:
/// no such file, no shared library, no pruner module (names the symbol that it lacks), another
/// version of the interface, a CPU feature that is missing here; of a module for a GPU no driver,
/// no device, one that it was not compiled for or that has no memory left.
Result<LoadedModule> load_module(const std::string& path, int threads = 0);

/// Seeded inputs to time a module with: floats in [-1, 1), integers and booleans 0 or 1.
std::vector<Tensor> seeded_inputs(std::span<const TensorSpec> specs, uint64_t seed);

}  // namespace pruner
