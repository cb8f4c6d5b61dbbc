// A deployed network from C++17: a library made by `pruner compile`, loaded with dlopen. Header
// only; link with -ldl where the C library still wants it. Throws nothing.
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "pruner/module.h"
#include "pruner/module_file.h"

namespace pruner {

/// One instance of a module: its code, weights, activations and threads. Moves, does not copy.
class Module {
 public:
  /// Loads `path` with an instance of `threads` threads (0: see pruner_module_create). When it
  /// cannot, `error` says why: no such file, a damaged one, no shared library, no module, a CPU
  /// feature missing.
  static std::optional<Module> load(const std::string& path, int threads, std::string* error) {
    PrunerOptions options = {};
    options.size = sizeof options;
    options.threads = threads;
    return load(path, options, error);
  }
  /// Loads a module with options, such as the number of the GPU.
  static std::optional<Module> load(const std::string& path,
                                    const PrunerOptions& options,
                                    std::string* error) {
    Module module;
    const std::string problem = module.open(path, options);
    if (problem.empty()) return std::optional<Module>(std::move(module));
    if (error != nullptr) *error = path + ": " + problem;
    return std::nullopt;
  }

  Module(Module&& other) noexcept { swap(other); }
  Module& operator=(Module&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Module() {
    if (instance_ != nullptr) api_.destroy(instance_);
    if (library_ != nullptr) dlclose(library_);
  }

  int num_inputs() const { return static_cast<int>(phase(0).num_inputs); }
  int num_outputs() const { return static_cast<int>(phase(0).num_outputs); }
  const PrunerTensorSpec& input(int i) const { return phase(0).inputs[i]; }
  const PrunerTensorSpec& output(int i) const { return phase(0).outputs[i]; }
  int threads() const { return api_.threads(instance_); }
  int num_kernels() const { return api_.num_kernels(); }
  const PrunerKernelSpec& kernel(int i) const { return *api_.kernel(i); }
  const char* kernel_precision(int i) const { return api_.kernel_precision(i); }

  /// Return the phases, which run over the same weights and states; phase 0 is the default.
  int num_phases() const { return api_.num_phases(); }
  const PrunerPhase& phase(int i) const { return *api_.phase(i); }
  /// Returns the phase of that name; -1 if there is none.
  int find_phase(const std::string& name) const {
    for (int i = 0; i < num_phases(); ++i)
      if (phase(i).name == name) return i;
    return -1;
  }

  /// Return, read and write the states that the instance keeps from run to run.
  int num_states() const { return api_.num_states(); }
  const PrunerTensorSpec& state(int i) const { return *api_.state(i); }
  bool read_state(int i, void* to) const { return api_.read_state(instance_, i, to) == 0; }
  bool write_state(int i, const void* from) { return api_.write_state(instance_, i, from) == 0; }
  /// Makes all states zeros again.
  void reset() { api_.reset(instance_); }

  /// Runs the network on dense row-major tensors in the order of the specs; false: see error().
  bool run(const void* const* inputs, void* const* outputs) {
    return run_phase(0, inputs, outputs);
  }
  /// Runs a phase; `seconds` is null, or takes the seconds of each of the phase's kernels.
  bool run_phase(int phase,
                 const void* const* inputs,
                 void* const* outputs,
                 double* seconds = nullptr) {
    return api_.run_phase(instance_, phase, inputs, outputs, seconds) == 0;
  }
  /// Also writes the seconds that each kernel took.
  bool run_profiled(const void* const* inputs, void* const* outputs, double* seconds) {
    return run_phase(0, inputs, outputs, seconds);
  }

  /// Returns PRUNER_CPU, PRUNER_CUDA or PRUNER_OPENCL; modules before version 5 do not tell the
  /// two kinds of GPUs apart, and 0 stands for either.
  int device_kind() const {
    if (api_.device_kind != nullptr) return api_.device_kind();
    return threads() > 0 ? PRUNER_CPU : 0;
  }
  /// Returns the number of the instance's device among those of its kind.
  int device() const { return api_.device != nullptr ? api_.device(instance_) : 0; }
  /// Calls pruner_module_execute(), which takes tensors on a GPU and a stream; false: see error().
  /// A module before version 5 has no such call.
  bool can_execute() const { return api_.execute != nullptr; }
  bool execute(const PrunerRun& run) {
    return api_.execute != nullptr && api_.execute(instance_, &run) == 0;
  }
  /// Calls pruner_module_wait(): waits for all runs; false: one was wrong, see error().
  bool wait() { return api_.wait == nullptr || api_.wait(instance_) == 0; }

  /// Return the dimensions of a module compiled with --dim; the specs are of the greatest extents.
  int num_symbols() const { return api_.num_symbols == nullptr ? 0 : api_.num_symbols(); }
  const PrunerSymbol& symbol(int i) const { return *api_.symbol(i); }
  /// shapes() gives the dims of all inputs and outputs at these extents of the symbols, extents()
  /// the reverse; false: see error(). This and what follows is for modules with symbols.
  bool shapes(int phase, const int64_t* extents, int64_t* inputs, int64_t* outputs) const {
    return api_.shapes(phase, extents, inputs, outputs) == 0;
  }
  bool extents(int phase, const int64_t* inputs, int64_t* extents) const {
    return api_.extents(phase, inputs, extents) == 0;
  }
  bool run_shaped(int phase,
                  const int64_t* extents,
                  const void* const* inputs,
                  void* const* outputs,
                  double* seconds = nullptr) {
    return api_.run_shaped(instance_, phase, extents, inputs, outputs, seconds) == 0;
  }
  /// Gives the kernels that run at these extents.
  bool kernels_at(int phase, const int64_t* extents, int64_t* first, int64_t* count) const {
    return api_.kernels_at(phase, extents, first, count) == 0;
  }

  /// Calls pruner_module_output_dims(); false: the data decide no extents.
  bool output_dims(int64_t* dims) const {
    return api_.output_dims != nullptr && api_.output_dims(instance_, dims) == 0;
  }

  /// Returns "checked", or "not checked: " and why, from the compilation; "": the module is of
  /// an older version, which does not say it.
  const char* checked() const { return api_.checked == nullptr ? "" : api_.checked(); }
  /// pruner_module_numerics(): "onnx" or "ort"; "": the module is of an older version.
  const char* numerics() const { return api_.numerics == nullptr ? "" : api_.numerics(); }

  /// Calls pruner_module_time_kernels(); false: see error().
  bool time_kernels(double* seconds) {
    return api_.time_kernels != nullptr && api_.time_kernels(instance_, seconds) == 0;
  }

  /// Returns why the last failed call of this thread failed.
  const char* error() const { return api_.error(); }

 private:
  Module() = default;

  void swap(Module& other) {
    std::swap(library_, other.library_);
    std::swap(instance_, other.instance_);
    std::swap(api_, other.api_);
  }

  /// The symbol `name` as a T; the first one that is missing stays in missing_.
  template <typename T>
  void find(T& function, const char* name) {
    function = reinterpret_cast<T>(dlsym(library_, name));
    if (function == nullptr && missing_ == nullptr) missing_ = name;
  }

  /// Finds the functions of a module of version 3, which has no table.
  void find_functions() {
    find(api_.create, "pruner_module_create");
    find(api_.destroy, "pruner_module_destroy");
    find(api_.error, "pruner_module_error");
    find(api_.threads, "pruner_module_threads");
    find(api_.num_phases, "pruner_module_num_phases");
    find(api_.phase, "pruner_module_phase");
    find(api_.run_phase, "pruner_module_run_phase");
    find(api_.num_states, "pruner_module_num_states");
    find(api_.state, "pruner_module_state");
    find(api_.read_state, "pruner_module_read_state");
    find(api_.write_state, "pruner_module_write_state");
    find(api_.reset, "pruner_module_reset");
    find(api_.num_kernels, "pruner_module_num_kernels");
    find(api_.kernel, "pruner_module_kernel");
    find(api_.kernel_precision, "pruner_module_kernel_precision");
  }

  /// Opens the module; returns "" or the problem.
  std::string open(const std::string& path, const PrunerOptions& options) {
    // A bare file name would be searched on the library path.
    const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
    if (const char* problem = pruner_check_module_file(file.c_str())) return problem;
    library_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) {
      std::string reason = dlerror();
      if (reason.rfind(file + ": ", 0) == 0) reason.erase(0, file.size() + 2);
      return "cannot load: " + reason;
    }
    find(api_.abi, "pruner_module_abi");
    if (missing_ != nullptr) return std::string("not a pruner module: it has no ") + missing_;
    constexpr int kWithoutTable = 3;
    if (api_.abi() < kWithoutTable || api_.abi() > PRUNER_MODULE_ABI) {
      return "made for version " + std::to_string(api_.abi()) +
             " of the module interface, this program has " + std::to_string(PRUNER_MODULE_ABI) +
             "; compile it again";
    }
    if (api_.abi() == kWithoutTable) {
      find_functions();
    } else {
      decltype(&pruner_module_api) table = nullptr;
      find(table, "pruner_module_api");
      if (table != nullptr)
        std::memcpy(&api_, table(), std::min<size_t>(sizeof api_, table()->size));
    }
    if (missing_ != nullptr) return std::string("not a pruner module: it has no ") + missing_;
    const bool plain = options.device == 0 && options.allocate == nullptr;
    if (api_.create_with == nullptr && !plain)
      return "made for version " + std::to_string(api_.abi()) +
             " of the module interface, which knows neither numbers of GPUs nor pools of memory; "
             "compile it again";
    instance_ =
        api_.create_with != nullptr ? api_.create_with(&options) : api_.create(options.threads);
    return instance_ != nullptr ? "" : api_.error();
  }

  void* library_ = nullptr;
  PrunerModule* instance_ = nullptr;
  PrunerModuleApi api_ = {};
  const char* missing_ = nullptr;
};

}  // namespace pruner
