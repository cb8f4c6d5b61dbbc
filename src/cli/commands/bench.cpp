// pruner bench: the time of a module, and with --profile that of each kernel beside this CPU's
// peaks, measured in the same run; beside none when the module runs on a GPU.
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "deploy/loaded_module.h"
#include "measure/measure.h"
#include "report/profile_table.h"
#include "support/json.h"

namespace pruner {

static constexpr double kProbeSeconds = 0.2;

static Json to_json(const BenchResult& result) {
  return {{"median_ms", result.median_ms},
          {"mean_ms", result.mean_ms},
          {"std_ms", result.std_ms},
          {"runs", result.runs},
          {"threads", result.threads}};
}

Result<int> run_bench(const Options& options) {
  if (options.module.empty())
    return Error("bench: --module is missing; `pruner compile` makes one");
  TRY_ASSIGN(LoadedModule module, load_module(options.module, static_cast<int>(options.threads)));
  const std::vector<Tensor> inputs = seeded_inputs(module.inputs(), 0);
  const BenchOptions bench{.min_s = options.min_time_s};
  TRY_ASSIGN(const BenchResult result, module.bench(inputs, bench));
  std::vector<KernelTime> kernels;
  PeakRates peaks;
  if (options.profile) {
    TRY_ASSIGN(kernels, module.profile(inputs, bench));
    if (result.threads > 0) peaks = probe_peaks(host_target(result.threads), kProbeSeconds);
  }
  if (options.json) {
    Json json = to_json(result);
    if (options.profile) json.update(profile_json(kernels, peaks));
    fmt::print("{}\n", print_json(json));
    return kDone;
  }
  if (options.profile) fmt::print("{}", print_profile(kernels, peaks));
  fmt::print(
      "Mean inference time (std dev): {:.2f} ms ({:.2f} ms)\n", result.mean_ms, result.std_ms);
  const std::string on =
      result.threads > 0 ? fmt::format("{} threads", result.threads) : "on the GPU";
  fmt::print("Median: {:.3f} ms, {} runs, {}\n", result.median_ms, result.runs, on);
  return kDone;
}

}  // namespace pruner
