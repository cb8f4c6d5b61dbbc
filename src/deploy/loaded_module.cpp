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

  std::vector<Symbol> symbols;

  /// Holds one run's tensors, and the extents and kernels that follow from their shapes.
  struct Call {
    std::vector<const void*> in;
    std::vector<Tensor> results;
    std::vector<void*> out;
    std::vector<int64_t> extents;  // extents of the symbols
    int first_kernel = 0, num_kernels = 0;
  };

  static std::vector<int64_t> dims_of(std::span<const TensorSpec> specs) {
    std::vector<int64_t> dims;
    for (const TensorSpec& spec : specs)
      dims.insert(dims.end(), spec.shape.begin(), spec.shape.end());
    return dims;
  }
  /// The specs with other dims, one tensor after the other.
  static std::vector<TensorSpec> with_dims(std::vector<TensorSpec> specs,
                                           const std::vector<int64_t>& dims) {
    auto at = dims.begin();
    for (TensorSpec& spec : specs)
      for (int64_t& extent : spec.shape) extent = *at++;
    return specs;
  }

  Result<TensorSpecs> specs_at(std::span<const int64_t> extents, int phase) const {
    const Phase& of = phases[phase];
    if (symbols.empty()) return TensorSpecs{of.inputs, of.outputs};
    std::vector<int64_t> in = dims_of(of.inputs), out = dims_of(of.outputs);
    if (!module.shapes(phase, extents.data(), in.data(), out.data())) return Error(module.error());
    return TensorSpecs{with_dims(of.inputs, in), with_dims(of.outputs, out)};
  }

  Result<Call> make_call(std::span<const Tensor> tensors, int phase) const {
    const Phase& of = phases[phase];
    if (tensors.size() != of.inputs.size())
      return Error("expected ", of.inputs.size(), " inputs, found ", tensors.size());
    Call call{{}, {}, {}, std::vector<int64_t>(symbols.size()), of.first_kernel, of.num_kernels};
    std::vector<int64_t> dims;
    for (size_t i = 0; i < of.inputs.size(); ++i) {
      const TensorSpec is{of.inputs[i].name, tensors[i].dtype(), tensors[i].shape()};
      const bool fits = symbols.empty() ? is.shape == of.inputs[i].shape
                                        : is.shape.size() == of.inputs[i].shape.size();
      if (is.dtype != of.inputs[i].dtype || !fits)
        return Error("expected ", print(of.inputs[i]), ", found ", print(is));
      call.in.push_back(tensors[i].data());
      dims.insert(dims.end(), is.shape.begin(), is.shape.end());
    }
    if (!symbols.empty()) {
      int64_t first = 0, count = 0;
      if (!module.extents(phase, dims.data(), call.extents.data()) ||
          !module.kernels_at(phase, call.extents.data(), &first, &count))
        return Error(module.error());
      call.first_kernel = static_cast<int>(first);
      call.num_kernels = static_cast<int>(count);
    }
    TRY_ASSIGN(const TensorSpecs specs, specs_at(call.extents, phase));
    call.results = zeros(specs.outputs);
    call.out = pointers_of(call.results);
    return call;
  }

  bool run(Call& call, int phase, double* seconds = nullptr) {
    if (symbols.empty()) return module.run_phase(phase, call.in.data(), call.out.data(), seconds);
    return module.run_shaped(phase, call.extents.data(), call.in.data(), call.out.data(), seconds);
  }

  /// Returns the dims of all outputs of the last run if the data decide some; else nullopt.
  std::optional<std::vector<int64_t>> found_dims() const {
    std::vector<int64_t> dims = dims_of(phases.front().outputs);
    return module.output_dims(dims.data()) ? std::optional(std::move(dims)) : std::nullopt;
  }

  /// Cuts outputs to the used part if the data decide their extents.
  void trim(std::vector<Tensor>& results) const {
    const std::optional<std::vector<int64_t>> dims = found_dims();
    if (!dims) return;
    auto at = dims->begin();
    for (Tensor& tensor : results) {
      const auto end = at + std::ssize(tensor.shape());
      Tensor part(tensor.dtype(), {at, end});
      std::memcpy(part.data(), tensor.data(), static_cast<size_t>(part.bytes()));
      tensor = std::move(part);
      at = end;
    }
  }

  /// Seconds of each run until `options` are satisfied; `kernels` gets those of each run's kernels.
  Result<std::vector<double>> repeat(Call& call,
                                     const BenchOptions& options,
                                     int phase,
                                     std::vector<std::vector<double>>* kernels) {
    std::vector<double> kernel_s(static_cast<size_t>(call.num_kernels));
    std::vector<double> runs;
    double begin = steady_s();
    for (int i = -options.warm_up; i < options.min_runs || steady_s() - begin < options.min_s;
         ++i) {
      const double start = steady_s();
      if (!run(call, phase, kernels ? kernel_s.data() : nullptr)) return Error(module.error());
      if (i < 0) {
        begin = steady_s();
        continue;
      }
      runs.push_back(steady_s() - start);
      if (kernels) kernels->push_back(kernel_s);
    }
    return runs;
  }

  /// Returns the median time of each kernel of a call, given its seconds in each run.
  std::vector<KernelTime> kernel_times(const std::vector<std::vector<double>>& runs,
                                       const Call& call) const {
    std::vector<KernelTime> kernels;
    const bool staged = found_dims().has_value();
    for (int i = 0; i < call.num_kernels; ++i) {
      std::vector<double> times;
      for (const std::vector<double>& run : runs) times.push_back(run[i]);
      // A network in stages has kernels for extents that were not found.
      if (staged && std::ranges::all_of(times, [](double s) { return s == 0; })) continue;
      const int k = call.first_kernel + i;
      const PrunerKernelSpec& spec = module.kernel(k);
      // `spec` has the work at the greatest shape.
      const bool known = std::ranges::equal(call.extents, symbols, {}, {}, &Symbol::max);
      kernels.push_back({spec.name,
                         spec.sketch,
                         known ? static_cast<double>(spec.flops) : 0,
                         known ? static_cast<double>(spec.bytes) : 0,
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

std::string LoadedModule::checked() const { return state_->module.checked(); }

std::string LoadedModule::numerics() const { return state_->module.numerics(); }

Result<double> LoadedModule::time_kernels(std::span<const Tensor> inputs, int times) {
  TRY(run(inputs));
  std::vector<double> seconds(static_cast<size_t>(times));
  for (double& each : seconds)
    if (!state_->module.time_kernels(&each)) return Error(state_->module.error());
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

int LoadedModule::threads() const { return state_->module.threads(); }

const std::vector<Symbol>& LoadedModule::symbols() const { return state_->symbols; }

Result<TensorSpecs> LoadedModule::specs_at(std::span<const int64_t> extents, int phase) const {
  return state_->specs_at(extents, phase);
}

Result<std::vector<Tensor>> LoadedModule::run(std::span<const Tensor> inputs, int phase) {
  TRY_ASSIGN(State::Call call, state_->make_call(inputs, phase));
  if (!state_->run(call, phase)) return Error(state_->module.error());
  state_->trim(call.results);
  return std::move(call.results);
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
  TRY_ASSIGN(State::Call call, state_->make_call(inputs, phase));
  return state_->repeat(call, options, phase, nullptr);
}

Result<TracedRun> LoadedModule::trace(std::span<const Tensor> inputs, int phase) {
  constexpr BenchOptions kOne{.warm_up = 1, .min_runs = 1, .min_s = 0};
  TRY_ASSIGN(State::Call call, state_->make_call(inputs, phase));
  std::vector<std::vector<double>> kernels;
  TRY_ASSIGN(const std::vector<double> runs, state_->repeat(call, kOne, phase, &kernels));
  return TracedRun{runs[0], state_->kernel_times(kernels, call)};
}

Result<std::vector<KernelTime>> LoadedModule::profile(std::span<const Tensor> inputs,
                                                      const BenchOptions& options,
                                                      int phase) {
  TRY_ASSIGN(State::Call call, state_->make_call(inputs, phase));
  std::vector<std::vector<double>> runs;
  TRY(state_->repeat(call, options, phase, &runs));
  return state_->kernel_times(runs, call);
}

Result<LoadedModule> load_module(const std::string& path, int threads) {
  TRY(check_shared_library(path));
  std::string error;
  std::optional<Module> module = Module::load(path, threads, &error);
  if (!module) return Error(error);
  auto state =
      std::make_unique<LoadedModule::State>(LoadedModule::State{std::move(*module), {}, {}, {}});
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
  for (int i = 0; i < state->module.num_symbols(); ++i) {
    const PrunerSymbol& symbol = state->module.symbol(i);
    state->symbols.push_back({symbol.name, symbol.min, symbol.max, {}});
  }
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
