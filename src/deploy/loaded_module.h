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

/// Holds the work (PrunerKernelSpec) and the time of a kernel, in execution order. With several
/// shapes the work is known at the greatest shape alone; else it is 0.
struct KernelTime {
  std::string name, sketch;
  double flops = 0, bytes = 0;  // bytes 0: both are not known, as at another shape
  double median_ms = 0;
  std::string precision = {};  // "float32", a name of kDotRates or kTensorRates; empty: not known
};

/// Holds the time of a run by the clock of the host, and those of its kernels, one after the other.
struct TracedRun {
  double run_s = 0;
  std::vector<KernelTime> kernels;
};

/// Holds the specs of a phase's inputs and outputs.
struct TensorSpecs {
  std::vector<TensorSpec> inputs, outputs;
};

/// Owns the library and one instance; one call at a time.
class LoadedModule {
 public:
  LoadedModule(LoadedModule&&) noexcept;
  LoadedModule& operator=(LoadedModule&&) noexcept;
  ~LoadedModule();

  /// Returns the names of the phases; `phase` in the functions below is a phase's number.
  std::vector<std::string> phases() const;
  const std::vector<TensorSpec>& inputs(int phase = 0) const;
  const std::vector<TensorSpec>& outputs(int phase = 0) const;
  /// Return the states that the instance keeps from run to run, and their content; reset() zeroes
  /// it.
  const std::vector<TensorSpec>& states() const;
  std::vector<Tensor> read_states() const;
  void reset();
  /// Returns the symbols that the module was compiled with. With symbols, inputs() and outputs()
  /// are of the greatest shape, and each run is at the shapes of its tensors.
  const std::vector<Symbol>& symbols() const;
  /// Returns the tensors of a phase at these extents of the symbols. The error names the
  /// symbol that is out of its range.
  Result<TensorSpecs> specs_at(std::span<const int64_t> extents, int phase = 0) const;
  int threads() const;  // 0: it runs on a GPU
  /// pruner_module_checked(); empty: the module is too old to say.
  std::string checked() const;
  /// pruner_module_numerics(); empty: the module is too old to say.
  std::string numerics() const;
  /// KernelTime::precision of each kernel of all phases.
  std::vector<std::string> precisions() const;

  /// Returns outputs in the order of outputs(), which has the greatest extents if the data decide
  /// some. The error names an input that does not fit its spec.
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs, int phase = 0);
  /// Times of whole runs, by the clock of the host.
  Result<BenchResult> bench(std::span<const Tensor> inputs,
                            const BenchOptions& options,
                            int phase = 0);
  /// Seconds of each timed run.
  Result<std::vector<double>> time_runs(std::span<const Tensor> inputs,
                                        const BenchOptions& options,
                                        int phase = 0);
  /// Returns the time of each kernel.
  Result<std::vector<KernelTime>> profile(std::span<const Tensor> inputs,
                                          const BenchOptions& options,
                                          int phase = 0);
  /// Returns the seconds of all kernels of a GPU's module in a row, without copies of inputs and
  /// outputs: the median of `times`. Errors: the device does not tell, or the module is too old.
  Result<double> time_kernels(std::span<const Tensor> inputs, int times);
  /// Times one run, after a run that is not timed.
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
