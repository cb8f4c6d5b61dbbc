#include "deploy/loaded_module.h"

#include <elf.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "codegen/loader.h"
#include "pruner/module.hpp"
#include "support/clock.h"
#include "support/rng.h"

namespace pruner {
namespace {

TensorSpec to_spec(const PrunerTensorSpec& spec) {
  return {spec.name, static_cast<DType>(spec.dtype), {spec.shape, spec.shape + spec.rank}};
}

Result<Unit> check_shared_library(const std::string& path) {
  std::error_code error;
  const uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error) return Error(path, ": cannot load: ", error.message());
  Elf64_Ehdr head = {};
  std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(&head), sizeof head);
  if (bytes < sizeof head || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
      head.e_type != ET_DYN) {
    return Error(path, ": not a shared library; expected a module made by `pruner compile`");
  }
  if (const Result<Unit> ours = check_machine({reinterpret_cast<const char*>(&head), sizeof head});
      !ours.ok()) {
    return Error(path, ": ", ours.error().message());
  }
  return Unit{};
}

}  // namespace

static std::vector<TensorSpec> to_specs(const PrunerTensorSpec* specs, int64_t count) {
  std::vector<TensorSpec> all;
  for (int64_t i = 0; i < count; ++i) all.push_back(to_spec(specs[i]));
  return all;
}

struct LoadedModule::State {
  struct Phase {
    std::string name;
    std::vector<TensorSpec> inputs, outputs;
    int first_kernel = 0, num_kernels = 0;
  };
  Module module;
  std::vector<Phase> phases;
  std::vector<TensorSpec> states;

  Result<std::vector<const void*>> check_inputs(std::span<const Tensor> tensors, int phase) const {
    const std::vector<TensorSpec>& inputs = phases[phase].inputs;
    if (tensors.size() != inputs.size()) {
      return Error("expected ", inputs.size(), " inputs, found ", tensors.size());
    }
    std::vector<const void*> pointers;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const TensorSpec is{inputs[i].name, tensors[i].dtype(), tensors[i].shape()};
      if (is.dtype != inputs[i].dtype || is.shape != inputs[i].shape) {
        return Error("expected ", print(inputs[i]), ", found ", print(is));
      }
      pointers.push_back(tensors[i].data());
    }
    return pointers;
  }

  /// Seconds of each run until `options` are satisfied; `kernels` gets those of each run's kernels.
  Result<std::vector<double>> repeat(std::span<const Tensor> tensors,
                                     const BenchOptions& options,
                                     int phase,
                                     std::vector<std::vector<double>>* kernels) {
    TRY_ASSIGN(const std::vector<const void*> in, check_inputs(tensors, phase));
    std::vector<Tensor> results = zeros(phases[phase].outputs);
    std::vector<void*> out = pointers_of(results);
    std::vector<double> kernel_s(static_cast<size_t>(phases[phase].num_kernels));
    std::vector<double> runs;
    double begin = steady_s();
    for (int i = -options.warm_up; i < options.min_runs || steady_s() - begin < options.min_s;
         ++i) {
      const double start = steady_s();
      if (!module.run_phase(phase, in.data(), out.data(), kernels ? kernel_s.data() : nullptr)) {
        return Error(module.error());
      }
      if (i < 0) {
        begin = steady_s();
        continue;
      }
      runs.push_back(steady_s() - start);
      if (kernels) kernels->push_back(kernel_s);
    }
    return runs;
  }

  /// Of each kernel of a phase, by the seconds that it took in each run.
  std::vector<KernelTime> kernel_times(const std::vector<std::vector<double>>& runs,
                                       int phase) const {
    std::vector<KernelTime> kernels;
    for (int i = 0; i < phases[phase].num_kernels; ++i) {
      std::vector<double> times;
      for (const std::vector<double>& run : runs) times.push_back(run[i]);
      const int k = phases[phase].first_kernel + i;
      const PrunerKernelSpec& spec = module.kernel(k);
      kernels.push_back({spec.name,
                         spec.sketch,
                         static_cast<double>(spec.flops),
                         static_cast<double>(spec.bytes),
                         percentile(std::move(times), 50) * 1e3,
                         module.kernel_precision(k)});
    }
    return kernels;
  }

  static std::vector<Tensor> zeros(std::span<const TensorSpec> specs) {
    std::vector<Tensor> tensors;
    for (const TensorSpec& spec : specs) tensors.emplace_back(spec.dtype, spec.shape);
    return tensors;
  }

  static std::vector<void*> pointers_of(std::vector<Tensor>& tensors) {
    std::vector<void*> pointers;
    for (Tensor& tensor : tensors) pointers.push_back(tensor.data());
    return pointers;
  }
};

LoadedModule::LoadedModule(std::unique_ptr<State> state) : state_(std::move(state)) {}
LoadedModule::LoadedModule(LoadedModule&&) noexcept = default;
LoadedModule& LoadedModule::operator=(LoadedModule&&) noexcept = default;
LoadedModule::~LoadedModule() = default;

std::vector<std::string> LoadedModule::phases() const {
  std::vector<std::string> names;
  for (const State::Phase& phase : state_->phases) names.push_back(phase.name);
  return names;
}
const std::vector<TensorSpec>& LoadedModule::inputs(int phase) const {
  return state_->phases[phase].inputs;
}
const std::vector<TensorSpec>& LoadedModule::outputs(int phase) const {
  return state_->phases[phase].outputs;
}
const std::vector<TensorSpec>& LoadedModule::states() const { return state_->states; }

std::vector<Tensor> LoadedModule::read_states() const {
  std::vector<Tensor> states = State::zeros(state_->states);
  for (size_t i = 0; i < states.size(); ++i)
    state_->module.read_state(static_cast<int>(i), states[i].data());
  return states;
}

void LoadedModule::reset() { state_->module.reset(); }

int LoadedModule::threads() const { return state_->module.threads(); }

Result<std::vector<Tensor>> LoadedModule::run(std::span<const Tensor> inputs, int phase) {
  TRY_ASSIGN(const std::vector<const void*> in, state_->check_inputs(inputs, phase));
  std::vector<Tensor> results = State::zeros(outputs(phase));
  const std::vector<void*> out = State::pointers_of(results);
  if (!state_->module.run_phase(phase, in.data(), out.data())) return Error(state_->module.error());
  return results;
}

std::vector<std::string> LoadedModule::precisions() const {
  std::vector<std::string> precisions;
  for (int k = 0; k < state_->module.num_kernels(); ++k)
    precisions.emplace_back(state_->module.kernel_precision(k));
  return precisions;
}

Result<BenchResult> LoadedModule::bench(std::span<const Tensor> inputs,
                                        const BenchOptions& options,
                                        int phase) {
  const CoreWatch watch;
  TRY_ASSIGN(const std::vector<double> runs, time_runs(inputs, options, phase));
  BenchResult result = summarize(runs, options.warm_up);
  result.threads = threads();
  result.busy = watch.time();
  return result;
}

Result<std::vector<double>> LoadedModule::time_runs(std::span<const Tensor> inputs,
                                                    const BenchOptions& options,
                                                    int phase) {
  return state_->repeat(inputs, options, phase, nullptr);
}

Result<TracedRun> LoadedModule::trace(std::span<const Tensor> inputs, int phase) {
  constexpr BenchOptions kOne{.warm_up = 1, .min_runs = 1, .min_s = 0};
  std::vector<std::vector<double>> kernels;
  TRY_ASSIGN(const std::vector<double> runs, state_->repeat(inputs, kOne, phase, &kernels));
  return TracedRun{runs[0], state_->kernel_times(kernels, phase)};
}

Result<std::vector<KernelTime>> LoadedModule::profile(std::span<const Tensor> inputs,
                                                      const BenchOptions& options,
                                                      int phase) {
  std::vector<std::vector<double>> runs;
  TRY(state_->repeat(inputs, options, phase, &runs));
  return state_->kernel_times(runs, phase);
}

Result<LoadedModule> load_module(const std::string& path, int threads) {
  TRY(check_shared_library(path));
  std::string error;
  std::optional<Module> module = Module::load(path, threads, &error);
  if (!module) return Error(error);
  auto state =
      std::make_unique<LoadedModule::State>(LoadedModule::State{std::move(*module), {}, {}});
  for (int i = 0; i < state->module.num_phases(); ++i) {
    const PrunerPhase& phase = state->module.phase(i);
    state->phases.push_back({phase.name,
                             to_specs(phase.inputs, phase.num_inputs),
                             to_specs(phase.outputs, phase.num_outputs),
                             static_cast<int>(phase.first_kernel),
                             static_cast<int>(phase.num_kernels)});
  }
  for (int i = 0; i < state->module.num_states(); ++i)
    state->states.push_back(to_spec(state->module.state(i)));
  return LoadedModule(std::move(state));
}

std::vector<Tensor> seeded_inputs(std::span<const TensorSpec> specs, uint64_t seed) {
  Rng rng(seed);
  std::vector<Tensor> tensors;
  for (const TensorSpec& spec : specs) {
    Tensor& tensor = tensors.emplace_back(spec.dtype, spec.shape);
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      if (is_float(spec.dtype)) {
        tensor.set(i, 2 * rng.uniform() - 1);
      } else {
        tensor.set_int(i, rng.below(2));
      }
    }
  }
  return tensors;
}

}  // namespace pruner
