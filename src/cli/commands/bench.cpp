// pruner bench: the time of a module, alone or in turns with another module or ONNX Runtime; with
// --profile that of each kernel beside this CPU's peaks, measured in the same run, or those of a
// GPU whose tensor cores a kernel uses.
#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/phase.h"
#include "cli/source.h"
#include "cli/verify.h"
#include "deploy/loaded_module.h"
#include "deploy/peer.h"
#include "deploy/race.h"
#include "measure/measure.h"
#include "report/bench_report.h"
#include "report/profile_table.h"
#include "report/trace.h"
#include "support/file.h"
#include "target/dot_rates.h"
#include "target/tensor_rates.h"

namespace pruner {

namespace {

constexpr double kProbeSeconds = 0.2;  // about, for each of the peaks

/// Times all kernels in a row; nullopt if this device does not tell, or the module is too old.
std::optional<double> kernels_in_a_row_s(LoadedModule& module, std::span<const Tensor> inputs) {
  constexpr int kTimes = 21;
  const Result<double> seconds = module.time_kernels(inputs, kTimes);
  return seconds.ok() ? std::optional(*seconds) : std::nullopt;
}

/// The target with rates of just the units that the kernels use.
Target with_units_of(std::span<const KernelTime> kernels, Target target) {
  target.dots = {};
  for (const KernelTime& kernel : kernels) {
    // Any rate above 0 will do, since the probe measures the unit.
    const DotRateRow* unit = find_dot_rate(kernel.precision);
    if (unit != nullptr) target.dots.*unit->rate = 1;
    const TensorRateRow* cores = find_tensor_rate(kernel.precision);
    if (cores != nullptr) target.gpu.tensor_rates.*cores->rate = 1;
  }
  return target;
}

/// Measures the peaks on as many threads as the module ran, so that shares of the peaks mean
/// something. A GPU's peaks are measured only if kernels use its tensor cores, which are CUDA's.
Result<PeakRates> peaks_for(std::span<const KernelTime> kernels, int threads) {
  if (threads > 0) return probe_peaks(with_units_of(kernels, host_target(threads)), kProbeSeconds);
  const bool uses_tensor_cores = std::ranges::any_of(
      kernels, [](const KernelTime& k) { return find_tensor_rate(k.precision) != nullptr; });
  if (!uses_tensor_cores) return PeakRates{.dots = {}, .threads = 0};
  TRY_ASSIGN(const Target cuda, parse_target(backend_name(Backend::kCuda), 0));
  return probe_gpu_peaks(with_units_of(kernels, cuda), kProbeSeconds);
}

/// Returns the file of the network that the peer runs; a built-in network is written into `folder`.
Result<std::string> peer_model(const SourceOptions& what, const TemporaryFolder& folder) {
  if (!what.model_file.empty()) return what.model_file;
  TRY_ASSIGN(const Graph graph, read_network(what));
  const std::string path = folder.path("peer.onnx");
  TRY(export_onnx(graph, path));
  return path;
}

Result<Unit> check_alike(std::span<const TensorSpec> a,
                         std::span<const TensorSpec> b,
                         const char* what) {
  const auto words = [](std::span<const TensorSpec> specs) {
    std::string text;
    for (const TensorSpec& spec : specs) text += (text.empty() ? "" : ", ") + print(spec);
    return text;
  };
  const bool alike = std::ranges::equal(a, b, [](const TensorSpec& x, const TensorSpec& y) {
    return x.shape == y.shape && x.dtype == y.dtype;
  });
  if (alike) return Unit{};
  return Error("its ", what, " are ", words(b), ", those of the first ", words(a));
}

/// Holds the module's times, and in a race the times of all racers, the module first.
struct Timed {
  BenchResult result = {};
  std::vector<std::string> names = {};
  RaceTimes race = {};
};

struct Bench {
  std::string path;
  int threads = 0;        // 0: the number the module was tuned for
  double min_time_s = 1;  // time of all timed runs together
  int runs = 0;           // 0: as many as take min_time_s
  int warm_up = BenchOptions().warm_up;
  std::string phase;  // empty: the first one
  bool profile = false;
  bool verify = false;
  std::string compared, peer;  // another module; "onnxruntime"
  std::string trace_file;
  SourceOptions what;  // source of the module, for --verify and --peer
  int jobs = 0;        // threads that compile the source again

  void add_to(CLI::App& app) {
    begin_group(app, OptionGroup::kInput);
    add_option(app, "--module FILE", path).help("the module (made by `pruner compile`)");
    add_threads(app, threads);
    add_phase(app, phase);
    begin_group(app, OptionGroup::kMeasuring);
    add_option(app, "--min-time SECONDS", min_time_s)
        .help("how long is measured, ten runs at least", "1");
    add_option(app, "--runs N", runs).help("runs to measure, in place of --min-time");
    add_option(app, "--warmup N", warm_up).help("runs before those", "3");
    add_option(app, "--compare FILE", compared).help("another module, run in turns with this one");
    add_option(app, "--peer NAME", peer)
        .help(
            "onnxruntime: run the network given in turns with the module, by $PRUNER_PYTHON or "
            "python3");
    add_option(app, "--profile", profile).help("time each kernel");
    add_option(app, "--trace FILE", trace_file)
        .writes()
        .replaces({FileKind::kJson})
        .help("write one run's kernels as Chrome's trace events, for Perfetto");
    add_verify(app, verify);
    what.add_to(app);
    add_jobs(app, jobs);
  }

  BenchOptions bench_options() const {
    if (runs > 0) return {.warm_up = warm_up, .min_runs = runs, .min_s = 0};
    return {.warm_up = warm_up, .min_s = min_time_s};
  }

  Result<Unit> check_options() const {
    if (path.empty()) return Error("bench: --module is missing; `pruner compile` makes one");
    if (!peer.empty() && peer != "onnxruntime")
      return Error("--peer: \"", peer, "\" is not onnxruntime");
    if (!peer.empty() && what.model_file.empty() == what.network.empty())
      return Error("--peer: say what the module was made of: MODEL.onnx or --network");
    if (verify && !what.named())
      return Error("--verify: say what the module was made of: MODEL.onnx, --network or --op");
    if (!verify && peer.empty() && what.named())
      return Error("bench: a network beside --module is for --verify or --peer");
    return pruner::check_options(what);
  }

  /// Compares with a module of the source for this CPU.
  Result<Agreement> verify_with_source() const {
    TRY_ASSIGN(const Target target, read_target({.threads = threads, .device = {}}));
    SourceOptions ranged = what;
    TRY_ASSIGN(const LoadedModule module, load_module(path, threads));
    // The network is read at all shapes of the module, whatever the shape that is timed.
    for (const Symbol& symbol : module.symbols()) {
      std::erase_if(ranged.dims,
                    [&](const std::string& dim) { return dim.starts_with(symbol.name + "="); });
      ranged.dims.push_back(print(symbol));
    }
    TRY_ASSIGN(const Source source, read_source(ranged, target));
    return verify_module(path, source.phases, target, jobs);
  }

  /// The module of --compare, of the same phase; the error says how its inputs or outputs differ.
  Result<LoadedModule> load_other(const LoadedModule& module,
                                  const TensorSpecs& specs,
                                  int number) const {
    TRY_ASSIGN(LoadedModule other, load_module(compared, module.threads()));
    TRY_ASSIGN(const int same, find_phase(other, module.phases()[static_cast<size_t>(number)]));
    TRY_ASSIGN(
        const std::vector<int64_t> extents,
        find_extents(other, other.symbols().empty() ? std::vector<std::string>() : what.dims));
    TRY_ASSIGN(const TensorSpecs others, other.specs_at(extents, same));
    Result<Unit> alike = check_alike(specs.inputs, others.inputs, "inputs");
    if (alike.ok()) alike = check_alike(specs.outputs, others.outputs, "outputs");
    if (!alike.ok()) return Error("--compare: ", compared, ": ", alike.error().message());
    return other;
  }

  /// ONNX Runtime on the same inputs and as many threads; the error says how its outputs differ.
  Result<PeerRuntime> start_peer(const LoadedModule& module,
                                 const TensorSpecs& specs,
                                 std::span<const Tensor> inputs) const {
    if (module.threads() == 0)
      return Error("--peer: ONNX Runtime runs on this CPU, the module not");
    TRY_ASSIGN(const TemporaryFolder folder, TemporaryFolder::make(""));
    TRY_ASSIGN(const std::string model, peer_model(what, folder));
    std::vector<NamedTensor> named;
    for (size_t i = 0; i < inputs.size(); ++i) named.push_back({specs.inputs[i].name, inputs[i]});
    TRY_ASSIGN(PeerRuntime started, PeerRuntime::start(model, named, module.threads()));
    TRY_ASSIGN(std::vector<NamedTensor> outputs, started.outputs());
    const auto matched = match_tensors(specs.outputs, std::move(outputs));
    if (!matched.ok()) return Error("--peer: ", model, ": ", matched.error().message());
    return started;
  }

  /// Times the module, alone or in turns with others.
  Result<Timed> time(LoadedModule& module,
                     const TensorSpecs& specs,
                     std::span<const Tensor> inputs,
                     int number) const {
    if (compared.empty() && peer.empty()) {
      TRY_ASSIGN(const BenchResult alone, module.bench(inputs, bench_options(), number));
      return Timed{alone};
    }
    CoreTime busy;  // while a module has its turn: a peer is no stranger
    const auto turns_of = [inputs, &busy](LoadedModule& of, int phase_of) {
      return [&of, phase_of, inputs, &busy](const BenchOptions& turn) {
        const CoreWatch watch;
        Result<std::vector<double>> runs = of.time_runs(inputs, turn, phase_of);
        busy += watch.time();
        return runs;
      };
    };
    std::vector<Racer> racers = {{path, turns_of(module, number)}};
    std::optional<LoadedModule> other;
    if (!compared.empty()) {
      TRY_ASSIGN(other, load_other(module, specs, number));
      TRY_ASSIGN(const int same, find_phase(*other, module.phases()[static_cast<size_t>(number)]));
      racers.push_back({compared, turns_of(*other, same)});
    }
    std::optional<PeerRuntime> started;
    if (!peer.empty()) {
      TRY_ASSIGN(PeerRuntime found, start_peer(module, specs, inputs));
      started.emplace(std::move(found));
      racers.push_back(
          {started->name(), [&started](const BenchOptions& turn) { return started->run(turn); }});
    }
    Timed timed;
    TRY_ASSIGN(timed.race, race(racers, bench_options()));
    for (size_t i = 0; i < racers.size(); ++i) {
      timed.names.push_back(racers[i].name);
      timed.race.of[i].threads = module.threads();
    }
    timed.result = timed.race.of[0];
    timed.result.busy = busy;
    return timed;
  }

  Result<Unit> write_trace(LoadedModule& module, std::span<const Tensor> inputs, int number) const {
    TRY_ASSIGN(const TracedRun traced, module.trace(inputs, number));
    return write_file(trace_file,
                      print_json(trace_json(trace_run(traced, path, module.threads()))) + "\n");
  }

  Result<int> run(const Invocation& call) const {
    TRY(check_options());
    TRY_ASSIGN(LoadedModule module, load_module(path, threads));
    TRY_ASSIGN(const int number, find_phase(module, phase));
    TRY_ASSIGN(const std::vector<int64_t> extents, find_extents(module, what.dims));
    TRY_ASSIGN(const TensorSpecs specs, module.specs_at(extents, number));
    const std::vector<Tensor> inputs = seeded_inputs(specs.inputs, 0);
    const Result<Timed> timed = time(module, specs, inputs, number);
    if (!timed.ok() && lacks_peer(timed.error().message())) {
      fmt::print(stderr, "pruner: {}\n", timed.error().message());
      return kFailed;
    }
    TRY(timed);
    const BenchResult& result = timed->result;
    if (!trace_file.empty()) TRY(write_trace(module, inputs, number));
    std::vector<KernelTime> kernels;
    PeakRates peaks{.dots = {}, .threads = result.threads};
    std::optional<double> kernels_s;  // all of them in a row, where the device tells
    if (profile) {
      if (module.threads() == 0) kernels_s = kernels_in_a_row_s(module, inputs);
      TRY_ASSIGN(kernels, module.profile(inputs, bench_options(), number));
      TRY_ASSIGN(peaks, peaks_for(kernels, result.threads));
    }
    Json verified = Json::object();
    std::string verified_text;
    if (verify) {
      TRY_ASSIGN(const Agreement agreement, verify_with_source());
      TRY(show(agreement, verified, verified_text));
    }
    const std::optional<int64_t> batch = batch_of(specs.inputs, specs.outputs);
    Json json = bench_json(result, batch);
    if (!timed->names.empty()) json["others"] = race_json(timed->names, timed->race, batch);
    if (profile) json.update(profile_json(kernels, peaks));
    if (kernels_s) json["kernels_in_a_row_ms"] = *kernels_s * 1e3;
    json.update(verified);
    std::string text = profile ? print_profile(kernels, peaks) : "";
    if (kernels_s)
      text += fmt::format("The kernels in a row, without copies: {:.4f} ms\n", *kernels_s * 1e3);
    text += print_bench(result, batch) + print_race(timed->names, timed->race);
    if (const std::string busy = print_busy(result.busy); !busy.empty())
      text += fmt::format("While it ran, {}: alone it is faster\n", busy);
    return call.show(json, text + verified_text);
  }
};

}  // namespace

RunCommand make_bench(CLI::App& app) { return make_command<Bench>(app); }

}  // namespace pruner
