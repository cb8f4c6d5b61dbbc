// pruner bench: the time of a module, and with --profile that of each kernel beside this CPU's
// peaks, measured in the same run, or those of a GPU whose tensor cores a kernel uses.
#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/phase.h"
#include "cli/source.h"
#include "cli/verify.h"
#include "deploy/loaded_module.h"
#include "measure/measure.h"
#include "report/profile_table.h"
#include "target/dot_rates.h"
#include "target/tensor_rates.h"

namespace pruner {

namespace {

constexpr double kProbeSeconds = 0.2;  // about, for each of the peaks

/// The target with rates of just the units that the kernels use.
Target with_units_of(std::span<const KernelTime> kernels, Target target) {
  target.dots = {};
  for (const KernelTime& kernel : kernels) {
    // Whatever it is: it is measured.
    const DotRateRow* unit = find_dot_rate(kernel.precision);
    if (unit != nullptr) target.dots.*unit->rate = 1;
    const TensorRateRow* cores = find_tensor_rate(kernel.precision);
    if (cores != nullptr) target.gpu.tensor_rates.*cores->rate = 1;
  }
  return target;
}

/// On as many threads as the module ran, so that shares of the peaks mean something. Of a GPU only
/// where its tensor cores are used: that is CUDA's.
Result<PeakRates> peaks_for(std::span<const KernelTime> kernels, int threads) {
  if (threads > 0) return probe_peaks(with_units_of(kernels, host_target(threads)), kProbeSeconds);
  const bool uses_tensor_cores = std::ranges::any_of(
      kernels, [](const KernelTime& k) { return find_tensor_rate(k.precision) != nullptr; });
  if (!uses_tensor_cores) return PeakRates{.dots = {}, .threads = 0};
  TRY_ASSIGN(const Target cuda, parse_target(backend_name(Backend::kCuda), 0));
  return probe_gpu_peaks(with_units_of(kernels, cuda), kProbeSeconds);
}

struct Bench {
  std::string path;
  int threads = 0;        // 0: the number the module was tuned for
  double min_time_s = 1;  // of the timed runs together
  std::string phase;      // empty: the first one
  bool profile = false;
  bool verify = false;
  SourceOptions what;  // of --verify: what the module was made of
  int jobs = 0;        // that compile it again

  void add_to(CLI::App& app) {
    add_option(app, "--module", path).help("the module (made by `pruner compile`)");
    add_threads(app, threads);
    add_phase(app, phase);
    add_option(app, "--min-time", min_time_s).help("seconds to measure for");
    add_option(app, "--profile", profile).help("time each kernel");
    add_verify(app, verify);
    what.add_to(app);
    add_jobs(app, jobs);
  }

  /// Compares with a module of the source for this CPU.
  Result<Agreement> verify_with_source() const {
    TRY_ASSIGN(const Target target, read_target({.threads = threads, .device = {}}));
    TRY_ASSIGN(const Source source, read_source(what, target));
    return verify_module(path, source.phases, target, jobs);
  }

  Result<int> run(const Invocation& call) const {
    if (path.empty()) return Error("bench: --module is missing; `pruner compile` makes one");
    if (verify && !what.named())
      return Error("--verify: say what the module was made of: MODEL.onnx, --network or --op");
    if (!verify && what.named()) return Error("bench: a network beside --module is for --verify");
    TRY_ASSIGN(LoadedModule module, load_module(path, threads));
    TRY_ASSIGN(const int number, find_phase(module, phase));
    const std::vector<Tensor> inputs = seeded_inputs(module.inputs(number), 0);
    const BenchOptions bench{.min_s = min_time_s};
    TRY_ASSIGN(const BenchResult result, module.bench(inputs, bench, number));
    std::vector<KernelTime> kernels;
    PeakRates peaks{.dots = {}, .threads = result.threads};
    if (profile) {
      TRY_ASSIGN(kernels, module.profile(inputs, bench, number));
      TRY_ASSIGN(peaks, peaks_for(kernels, result.threads));
    }
    Json verified = Json::object();
    std::string verified_text;
    if (verify) {
      TRY_ASSIGN(const Agreement agreement, verify_with_source());
      TRY(show(agreement, verified, verified_text));
    }
    if (call.json) {
      Json json = {{"median_ms", result.median_ms},
                   {"mean_ms", result.mean_ms},
                   {"std_ms", result.std_ms},
                   {"runs", result.runs},
                   {"threads", result.threads},
                   {"others_share", result.busy.share()}};
      if (profile) json.update(profile_json(kernels, peaks));
      json.update(verified);
      fmt::print("{}\n", print_json(json));
      return kDone;
    }
    if (profile) fmt::print("{}", print_profile(kernels, peaks));
    fmt::print(
        "Mean inference time (std dev): {:.2f} ms ({:.2f} ms)\n", result.mean_ms, result.std_ms);
    const std::string on =
        result.threads > 0 ? fmt::format("{} threads", result.threads) : "on the device";
    fmt::print("Median: {:.3f} ms, {} runs, {}\n", result.median_ms, result.runs, on);
    if (const std::string busy = print_busy(result.busy); !busy.empty())
      fmt::print("While it ran, {}: alone it is faster\n", busy);
    fmt::print("{}", verified_text);
    return kDone;
  }
};

}  // namespace

RunCommand make_bench(CLI::App& app) { return make_command<Bench>(app); }

}  // namespace pruner
